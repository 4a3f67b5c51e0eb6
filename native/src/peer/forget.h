/* SPDX-License-Identifier: BSD-3-Clause */
/* Freeing peers before their endpoint closes: uninserted ones beyond the bound, and removed ones. The domain's lock is held. */
#ifndef OFPI_FORGET_H
#define OFPI_FORGET_H

#include "object/peer.h"

/* The timer endpoint->forgetting. */
void ofpi_uninserted_peers_free(struct ofp_timer *timer, uint64_t now);
/* Free the removed peers. The caller is a public call: no provider uses a peer now. */
void ofpi_removed_peers_free(struct ofpi_endpoint *endpoint);

#endif
