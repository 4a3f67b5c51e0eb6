/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way a peer is reached: chosen when it connects, given up for the next one while it has not been up, fixed from then until
 * the loss of the peer. What the core does with the states of a peer, link does with those of a way.
 *
 *     outer        ways
 *     CONNECTING   one that we try, and those by which the peer has called
 *     UP           `taken` is up; others may be, by which the peer sends; one may still be tried, of no use any more
 *     LOST         none is CONNECTING or UP
 */
#ifndef LINK_LANE_H
#define LINK_LANE_H

#include "link/link_objects.h"

/* Try the ways, in their order. It ends in peer_up, peer_absent or peer_lost of the outer peer, maybe before it returns. */
void link_lanes_connect(struct ofp_peer *outer);
/* A new incarnation begins, or none does any more: nothing is known of former attempts. */
void link_lanes_clear_attempts(struct link_peer *peer);
/* As of peer_down: those that are CONNECTING or UP go down. */
void link_lanes_disconnect(struct ofp_peer *outer);
/* The way that is taken, or would be, as far as the address tells; NULL: there is none. */
const struct link_lane *link_lane_choose(const struct ofp_peer *outer);

/* What providers tell; as of struct ofp_services. */
void link_lane_connection_begun(struct ofp_peer *inner);
void link_lane_connected(struct ofp_peer *inner);
void link_lane_absence_found(struct ofp_peer *inner, const char *text);
void link_lane_lost(struct ofp_peer *inner, int error, bool process_gone, const char *text);
/* A message comes by a way before any is taken: it is this one. */
void link_lane_message_arrived(struct ofp_peer *inner);

#endif
