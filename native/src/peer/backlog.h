/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the backlog of a peer may go on. The domain's lock is held. */
#ifndef OFPI_BACKLOG_H
#define OFPI_BACKLOG_H

#include "object/peer.h"

/* It can be posted now, if it holds anything, nothing before it has to end and no hook holds it back. */
void ofpi_backlog_schedule(struct ofpi_peer *peer);
/* Whether the core holds this operation until what was posted before it has finished (fi_msg(3), FI_FENCE). */
bool ofpi_backlog_is_behind_fence(const struct ofpi_peer *peer, const struct ofp_operation *op);
/* An operation of a fenced peer has ended: see whether the backlog may go on. */
void ofpi_peer_fence_update(struct ofpi_peer *peer);
/* The time for which a hook held the head back is over, or the head is no more. */
void ofpi_backlog_delay_end(struct ofpi_peer *peer);
void ofpi_backlog_delay_expired(struct ofp_timer *timer, uint64_t now);

#endif
