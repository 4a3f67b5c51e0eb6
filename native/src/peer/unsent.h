/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unsent operations of an endpoint: sends, writes and atomics that have not left. Receives and reads are not counted.
 * The domain's lock is held.
 */
#ifndef OFPI_UNSENT_H
#define OFPI_UNSENT_H

#include "object/peer.h"

struct ofpi_unsent_peer {
    size_t length;
    uint8_t address[OFP_ADDRESS_MAX];
};

/* Count an operation if it is a send, write or atomic. */
bool ofpi_unsent_count(struct ofpi_unsent *unsent, const struct ofp_operation *op);
/* An operation of an endpoint that lingers has failed, or was cancelled. `peer` may be NULL. */
void ofpi_unsent_add(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer, const struct ofp_operation *op);
/* Note what the transport completed and still has in queues of its own. */
void ofpi_unsent_add_transport(struct ofpi_endpoint *endpoint);
/* Count those that peers' backlogs and the transport have; `waited_for`: only to peers that are up or connecting, one is enough. */
void ofpi_unsent_count_pending(const struct ofpi_endpoint *endpoint, bool waited_for, struct ofpi_unsent *unsent);

#endif
