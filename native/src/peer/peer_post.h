/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on their way to a peer. The domain's lock is held. */
#ifndef OFPI_PEER_POST_H
#define OFPI_PEER_POST_H

#include "object/peer.h"

/* Start an operation, connecting and keeping it as needed. */
int ofpi_peer_post(struct ofpi_peer *peer, const struct ofp_transfer *transfer);
/* Post what the backlogs hold; returns how many operations moved. */
int ofpi_peers_flush(struct ofpi_endpoint *endpoint);
/* Cancel a backlogged or pending send by context: only what the transport has not begun. */
int ofpi_peer_cancel(struct ofpi_endpoint *endpoint, uint64_t context, uint64_t op_flags);

#endif
