/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_PEER_H
#define TCP_PEER_H

#include "objects.h"

/* What the manager of native/meet does with the peers of RDM endpoints. */
extern const struct ofpi_meeting_ops tcp_meeting_ops;

/* The peer's connection is agreed upon: report the peer as up. */
void tcp_peer_report_up(struct ofp_peer *peer);
/* Close the peer's connection at once, and report the loss. */
void tcp_peer_lose(struct ofp_peer *peer, const struct ofpi_meeting_end *end);
/* As ofp_endpoint_ops.peer_down: close with a goodbye. */
void tcp_peer_disconnect(struct ofp_peer *peer);

#endif
