/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_CONNECT_H
#define TCP_CONNECT_H

#include "objects.h"

int tcp_peer_connect(struct ofp_peer *peer, char *text, size_t text_size);
/* The same, when that is decided. */
int tcp_peer_start_connect(struct ofp_peer *peer);
/* For the user, who wanted to connect. */
void tcp_connect_error_describe(const struct ofp_peer *peer, int error, char *text, size_t text_size);
/* The peer does not want our request now: again, or never, as the two decide that. */
void tcp_request_deferred(struct tcp_connection *connection);
/* End it at the deadline of its meeting. */
void tcp_connect_start_deadline(struct tcp_connection *connection);
/* TCP's handshake may be over. */
void tcp_socket_connected(struct tcp_connection *connection);
/* The connection that we opened, or whose request we accepted, is up. */
void tcp_connection_established(struct tcp_connection *connection);

#endif
