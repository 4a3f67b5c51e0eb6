/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_CONNECTION_H
#define TCP_CONNECTION_H

#include "objects.h"

/* In state `state`, with a meeting; takes the descriptor over (-1: none yet). NULL: out of memory, and it is closed. */
struct tcp_connection *tcp_connection_create(struct tcp_endpoint *endpoint, int fd, enum tcp_state state);
void tcp_connection_set_state(struct tcp_connection *connection, enum tcp_state state);
/* Let epoll tell of the socket. */
int tcp_connection_watch(struct tcp_connection *connection);
/* By which the other side knows the endpoint: the IP of this end, and the port that it is reached by. */
void tcp_connection_get_own_address(const struct tcp_connection *connection, union tcp_address *address);
/* Close the socket. */
void tcp_connection_close_socket(struct tcp_connection *connection);
/* It is over, without a word to the core. */
void tcp_connection_discard(struct tcp_connection *connection);
/* Nobody is where it should lead. */
void tcp_connection_end_absent(struct tcp_connection *connection, const char *text);
/* It is over, and so is the peer's way if it was that. */
void tcp_connection_end(struct tcp_connection *connection, int error, bool process_gone, const char *text);
/* The peer broke the protocol. */
void tcp_connection_end_for_violation(struct tcp_connection *connection, const char *what);
/* Tell this side's operator of somebody who is refused: as a warning once a second at most. */
void tcp_refusal_log(const struct tcp_connection *connection, const char *why);
/* Flush and hang up; the peer is not the core's any more. */
void tcp_connection_start_leaving(struct tcp_connection *connection);
/* True: there is nothing more to wait for. */
bool tcp_connection_drain(struct tcp_connection *connection);
void tcp_connections_free_dead(struct tcp_endpoint *endpoint);
void tcp_peer_disconnect(struct ofp_peer *peer);
/* It is up, or over. */
void tcp_meeting_free(struct tcp_connection *connection);

#endif
