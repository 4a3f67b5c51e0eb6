/* SPDX-License-Identifier: BSD-3-Clause */
/* How peers are reached, and asked again while nobody is there. The domain's lock is held. */
#ifndef OFPI_PEER_CONNECT_H
#define OFPI_PEER_CONNECT_H

#include "object/peer.h"

/* Have the provider reach a peer that is neither UP nor on its way; no effect while it is to be asked again. */
void ofpi_peer_connect(struct ofpi_peer *peer);
/* Withdraw a request of ofp_reach_request, whose peer it still awaits: it ends as cancelled. */
void ofpi_reach_cancel(struct ofp_request *request);
/* The row of struct ofp_services. */
void ofpi_peer_absence_handle(struct ofp_peer *peer, const char *text);

#endif
