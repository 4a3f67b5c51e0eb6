/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting to peers, with retries while nothing listens at their address. The domain's lock is held. */
#ifndef OFPI_PEER_CONNECT_H
#define OFPI_PEER_CONNECT_H

#include "object/peer.h"

/* Have the provider connect to a peer that is neither UP nor CONNECTING; no effect while a retry is scheduled. */
void ofpi_peer_connect(struct ofpi_peer *peer);
/* Cancel a request of ofp_reach_request that still waits for its peer. */
void ofpi_reach_cancel(struct ofp_request *request);
/* The row of struct ofp_services. */
void ofpi_peer_absence_handle(struct ofp_peer *peer, const char *text);

#endif
