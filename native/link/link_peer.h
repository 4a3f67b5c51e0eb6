/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers: decoding their addresses into lanes, and identifying callers and answering peers. */
#ifndef LINK_PEER_H
#define LINK_PEER_H

#include "link/link_objects.h"

/* As of ofp_endpoint_ops. */
int link_peer_open(struct ofp_peer *outer);
void link_peer_close(struct ofp_peer *outer);
void link_peer_readdressed(struct ofp_peer *outer);
const uint8_t *link_peer_get_identity(const struct ofp_peer *outer);
int link_peer_connect(struct ofp_peer *outer, char *text, size_t text_size);
void link_peer_disconnect(struct ofp_peer *outer);

/* As ofp_services.peer_by_identity and peer_identified. `identity` is NULL or zeros if the caller has not sent one. */
struct ofp_peer *link_peer_identify_caller(struct ofp_endpoint *inner, const uint8_t *identity, bool connects_only,
                                           const void *address, size_t length);
int link_peer_identity_check(struct ofp_peer *inner, const uint8_t *identity, char *text, size_t text_size);
int link_peer_identified(struct ofp_peer *inner, const uint8_t *identity, char *text, size_t text_size);
/* Decode the current address if it has changed. Call it before a new incarnation connects. */
void link_peer_update_address(struct ofp_peer *outer);

#endif
