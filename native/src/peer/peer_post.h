/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting operations to a peer. The domain's lock is held. */
#ifndef OFPI_PEER_POST_H
#define OFPI_PEER_POST_H

#include "object/peer.h"

/* Start an operation; connect to the peer and append to its backlog as needed. */
int ofpi_peer_post(struct ofpi_peer *peer, const struct ofp_transfer *transfer);
/* Post operations from the backlogs; returns how many. */
int ofpi_peers_flush(struct ofpi_endpoint *endpoint);
/* Cancel a backlogged or pending send by context: only if the transport has not started it. */
int ofpi_peer_cancel(struct ofpi_endpoint *endpoint, uint64_t context, uint64_t op_flags);
/* All of them, and the receives of this context that the transport has. */
void ofpi_peers_cancel(struct ofpi_endpoint *endpoint, uint64_t context, uint64_t op_flags);

#endif
