/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_CONNECT_H
#define TCP_CONNECT_H

#include "objects.h"

int tcp_peer_connect(struct ofp_peer *peer, char *text, size_t text_size);
/* As ofpi_meeting_ops.dial. */
int tcp_peer_start_connect(struct ofp_peer *peer, char *text, size_t text_size);
/* Connect to the address that tcp_peer.reached names. 0, or a negative errno. */
int tcp_connect_to_reached(struct tcp_connection *connection);
/* Compose the user's error text for a failed connect. */
void tcp_connect_error_describe(const struct ofp_peer *peer, int error, char *text, size_t text_size);
/*
 * The peer has refused a plain connection within the host, which may be one to another host: start again, encrypted.
 * False: the connection is another one.
 */
bool tcp_connect_retry_encrypted(struct tcp_connection *connection);
/* The peer has refused the key: start again with the next one. False: there is none, or the connection is another one. */
bool tcp_connect_retry_key(struct tcp_connection *connection);
/* The peer rejected our request for now: the core decides between another attempt and an error. */
void tcp_request_deferred(struct tcp_connection *connection);
/* Start the timer that ends the attempt at the meeting's deadline. */
void tcp_connect_start_deadline(struct tcp_connection *connection);
/* Handle an event of a connecting socket. TCP's handshake may not be complete yet. */
void tcp_socket_connected(struct tcp_connection *connection);
/* The peer accepted our request, and proved the key: it is up if its identity is right. */
void tcp_request_accepted(struct tcp_connection *connection);
/* The peer's connection is agreed upon: report the peer as up. As ofpi_meeting_ops.use. */
void tcp_peer_report_up(struct ofp_peer *peer);

#endif
