/* SPDX-License-Identifier: BSD-3-Clause */
/* When the backlog of a peer may be posted. The domain's lock is held. */
#ifndef OFPI_BACKLOG_H
#define OFPI_BACKLOG_H

#include "object/peer.h"

/* Have the next round of progress post the backlog. No effect while it is empty, fenced or delayed by a hook. */
void ofpi_backlog_schedule(struct ofpi_peer *peer);
/*
 * Whether this operation is fenced: it waits until all operations posted before it have completed (fi_msg(3),
 * FI_FENCE).
 */
bool ofpi_backlog_is_behind_fence(const struct ofpi_peer *peer, const struct ofp_operation *op);
/* An operation of a fenced peer has ended: schedule the backlog if the fence is reached. */
void ofpi_peer_fence_update(struct ofpi_peer *peer);
/* The head's delay is over, or the head was removed. */
void ofpi_backlog_delay_end(struct ofpi_peer *peer);
void ofpi_backlog_delay_expired(struct ofp_timer *timer, uint64_t now);

#endif
