/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_PEER_H
#define TCP_PEER_H

#include "objects.h"

/* The peer's connection is agreed upon: report the peer as up. */
void tcp_peer_report_up(struct ofp_peer *peer);
/* Close the peer's connection at once. */
void tcp_peer_close(struct ofp_peer *peer);
/* Close it, and report the loss. */
void tcp_peer_report_loss(struct ofp_peer *peer, const struct ofpi_meeting_end *end);
/* As ofp_endpoint_ops.peer_down: close with a goodbye. */
void tcp_peer_disconnect(struct ofp_peer *peer);

#endif
