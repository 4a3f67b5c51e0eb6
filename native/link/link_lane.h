/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes to a peer: link tries them in the order of the set and moves to the next one when an attempt fails. The first
 * lane that is UP carries all operations until the peer is lost. Link does with the states of a lane what the core
 * does with the states of a peer. All functions run under the lock of the outer domain.
 *
 *     outer peer   lanes
 *     CONNECTING   the one that we try (`trying`), and those by which the peer calls
 *     UP           `chosen` is UP; another may be UP, by which the peer sends; one may still be CONNECTING and is not
 *                  used. The loss of one that either side uses is that of the peer
 *     LOST         none is CONNECTING or UP
 */
#ifndef LINK_LANE_H
#define LINK_LANE_H

#include "link/link_objects.h"

/*
 * Try the lanes in their order. Ends in peer_up, peer_absent, peer_deferred or peer_lost of the outer peer, possibly
 * before the call returns.
 */
void link_lanes_connect(struct ofp_peer *outer);
/* Clear the results of all attempts: a new incarnation begins, or the last one has ended. */
void link_lanes_clear_attempts(struct link_peer *peer);
/* End all active lanes; as ofp_endpoint_ops.peer_down. */
void link_lanes_disconnect(struct ofp_peer *outer);
/* The chosen lane, or the lane that would be tried first; NULL if the address has none. */
const struct link_lane *link_lane_choose(const struct ofp_peer *outer);
/* The peer of that lane, for the table of endpoints. */
const struct ofp_peer *link_lane_choose_peer(const struct ofp_peer *outer);

/* Combine the lanes over which messages travel in either direction. The outer peer is UP. */
void link_lanes_query_security(const struct ofp_peer *outer, bool *proven, uint16_t *cipher);

/* Services that inner endpoints call; as the members of struct ofp_services. */
void link_lane_connection_begun(struct ofp_peer *inner);
void link_lane_connected(struct ofp_peer *inner);
void link_lane_absence_found(struct ofp_peer *inner, const char *text);
void link_lane_deferral_found(struct ofp_peer *inner, int error, const char *text);
void link_lane_lost(struct ofp_peer *inner, int error, bool process_gone, const char *text);
/*
 * A message arrived by a lane that has brought none in this incarnation. Choose the lane if there is no other; begin
 * another incarnation if the peer has sent by another lane before.
 */
void link_lane_message_arrived(struct ofp_peer *inner);

#endif
