/* SPDX-License-Identifier: BSD-3-Clause */
/* How peers come up and are lost, and what ends with them. The domain's lock is held. */
#ifndef OFPI_PEER_STATE_H
#define OFPI_PEER_STATE_H

#include "object/peer.h"

void ofpi_peer_mark_connecting(struct ofp_peer *peer);
/* The same, as it contacts us: somebody is there. */
void ofpi_peer_called(struct ofp_peer *peer);
/* Nobody was there who could be asked: the provider forgets that it was, what was posted stays. */
void ofpi_peer_mark_unused(struct ofp_peer *peer);
void ofpi_peer_established(struct ofp_peer *peer);
/* Nobody is asked any more whether it is there. */
void ofpi_peer_attempts_stop(struct ofpi_peer *peer);
void ofpi_peer_lost(struct ofp_peer *peer, int error, bool process_gone, const char *text);
/* The process of this rank has ended: the peer is gone once the transport has read all that came from it. */
void ofpi_peer_departure_handle(struct ofpi_peer *peer, enum ofpi_departure departed);
/* Lose every peer: what is pending ends as cancelled. The objects stay until ofpi_peers_free. */
void ofpi_peers_close(struct ofpi_endpoint *endpoint);
/* A receive that names the peer was posted: if it waits, and the peer is gone, it ends. */
void ofpi_peer_mark_named(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer);
/* The same in a shared receive context, for the peers of the endpoints that share it. */
void ofpi_receives_end_in_shared(struct ofpi_endpoint *context, uint32_t index);
/* The address was inserted again: somebody is expected there. */
void ofpi_peer_mark_expected(struct ofpi_endpoint *endpoint, uint32_t index);
/* The entry leaves the address vector: its operations end as cancelled. */
void ofpi_peer_removed(struct ofpi_endpoint *endpoint, uint32_t index);
/* Have the transport let go of these receives, and end those that it does with `error`. */
void ofpi_receives_end(struct ofpi_endpoint *endpoint, struct ofp_list *list, int error, int provider_error);

#endif
