/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting to peers, with retries while one is absent, or defers the request. The domain's lock is held. */
#ifndef OFPI_PEER_CONNECT_H
#define OFPI_PEER_CONNECT_H

#include "object/peer.h"

/* Have the provider connect to a peer that is neither UP nor CONNECTING; no effect while a retry is scheduled. */
void ofpi_peer_connect(struct ofpi_peer *peer);
/* Cancel a request of ofp_reach_request that still waits for its peer. */
void ofpi_reach_cancel(struct ofp_request *request);
/* Rows of struct ofp_services. */
void ofpi_peer_absence_handle(struct ofp_peer *peer, const char *text);
void ofpi_peer_deferral_handle(struct ofp_peer *peer, int error, const char *text);

#endif
