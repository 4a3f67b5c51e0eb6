/* SPDX-License-Identifier: BSD-3-Clause */
/* How peers come up and are lost, and what ends with them. The domain's lock is held. */
#ifndef OFPI_PEER_STATE_H
#define OFPI_PEER_STATE_H

#include "object/peer.h"

void ofpi_peer_mark_connecting(struct ofp_peer *peer);
/* As ofpi_peer_mark_connecting, for a peer that connects to this side. */
void ofpi_peer_called(struct ofp_peer *peer);
/* Nothing listens at the peer's address: return to UNUSED; the backlog stays. */
void ofpi_peer_mark_unused(struct ofp_peer *peer);
void ofpi_peer_established(struct ofp_peer *peer);
/* End the retries of connecting. */
void ofpi_peer_attempts_stop(struct ofpi_peer *peer);
/* Complete the requests of ofp_reach_request that wait for this peer. */
void ofpi_reach_requests_end(struct ofpi_peer *peer, int error, int provider_error);
void ofpi_peer_lost(struct ofp_peer *peer, int error, bool process_gone, const char *text);
/* The process of this rank has ended: mark the peer gone once the transport has read everything that it sent. */
void ofpi_peer_departure_handle(struct ofpi_peer *peer, enum ofpi_departure departed);
/* Mark every peer lost: pending operations end as cancelled. The objects stay until ofpi_peers_free. */
void ofpi_peers_close(struct ofpi_endpoint *endpoint);
/* If the process of a peer that is gone has ended, end the receives that name the peer, after a pause. */
void ofpi_receives_end_if_ended(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer);
/* A receive that names the peer was posted: if it is unmatched and the peer is gone, end it. */
static inline void ofpi_peer_mark_named(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer)
{
    peer->named = true;
    if (__builtin_expect(peer->gone, 0))
        ofpi_receives_end_if_ended(endpoint, peer);
}
/* The same in a shared receive context, for the peers of the endpoints that share it. */
void ofpi_receives_end_in_shared(struct ofpi_endpoint *context, uint32_t index);
/* The address was inserted: the application expects a process there, and the peer is not gone. */
void ofpi_peer_mark_expected(struct ofpi_peer *peer);
/* The entry leaves the address vector: its operations end as cancelled. */
void ofpi_peer_removed(struct ofpi_endpoint *endpoint, uint32_t index);
/* Have the transport cancel these receives, and end the cancelled ones with `error`. */
void ofpi_receives_end(struct ofpi_endpoint *endpoint, struct ofp_list *list, int error, int provider_error);

#endif
