/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers of an endpoint: found by index or address, created at first use. The domain's lock is held. */
#ifndef OFPI_PEER_FIND_H
#define OFPI_PEER_FIND_H

#include "object/peer.h"

/* The peer of an address vector index, created at first use. NULL: *error says why. */
struct ofpi_peer *ofpi_peer_get(struct ofpi_endpoint *endpoint, uint32_t index, int *error);
/* The one peer of an endpoint of type MSG, state UNUSED; endpoint->peers owns it. NULL: out of memory. */
struct ofpi_peer *ofpi_only_peer_create(struct ofpi_endpoint *endpoint, const void *address, size_t length);
/* Create the peers of all entries of the endpoint's vector, for a transport with `eager_peers`. */
int ofpi_peers_create(struct ofpi_endpoint *endpoint);
/* The index of an address, or OFP_PEER_UNKNOWN. */
uint32_t ofpi_source_find(struct ofp_endpoint *endpoint, const void *address, size_t length);
/* Free a peer without operations, which is in no table of the endpoint any more; NULL is ignored. */
void ofpi_peer_free(struct ofpi_peer *peer);
/* Take a peer out of the unknown senders. False: it is not among them. */
bool ofpi_unknown_sender_remove(struct ofpi_peer *peer);
void ofpi_peers_free(struct ofpi_endpoint *endpoint);
struct ofp_peer *ofpi_peer_find_by_address(struct ofp_endpoint *endpoint, const void *address, size_t length);
/*
 * Zero the private part of a peer that connects again: the hooks' bytes and, without `peers_persist`, the transport's.
 */
void ofpi_peer_clear(const struct ofp_peer *peer);
/* The peer's entry was inserted again, with a more complete address. */
void ofpi_peer_readdressed(struct ofpi_endpoint *endpoint, uint32_t index);

#endif
