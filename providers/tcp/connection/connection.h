/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_CONNECTION_H
#define TCP_CONNECTION_H

#include "objects.h"

/* Create a connection with a meeting. It owns `fd` (-1: none yet). NULL: out of memory, and `fd` is closed. */
struct tcp_connection *tcp_connection_create(struct tcp_endpoint *endpoint, int fd, enum tcp_state state);
void tcp_connection_set_state(struct tcp_connection *connection, enum tcp_state state);
/* Add the socket to epoll. */
int tcp_connection_watch(struct tcp_connection *connection);
/* Have epoll report the socket's present state again. */
void tcp_connection_watch_anew(struct tcp_connection *connection);
/* The address by which the peer knows this endpoint: the IP address of the socket, and the listening port. */
void tcp_connection_get_own_address(const struct tcp_connection *connection, union tcp_address *address);
/* The address at which the peer listens: that of the socket, and a port of its request. False: there is none. */
bool tcp_connection_get_listening_address(const struct tcp_connection *connection, uint16_t port,
                                          union tcp_address *address);
void tcp_connection_close_socket(struct tcp_connection *connection);
/* The peer of an accepted connection is known: it leaves endpoint->unproven. */
void tcp_connection_mark_known(struct tcp_connection *connection);
/* End the connection without a report to the core. */
void tcp_connection_discard(struct tcp_connection *connection);
/* End it, and report that to the core if the connection had a peer. */
void tcp_connection_end_as(struct tcp_connection *connection, const struct ofpi_meeting_end *end);
/* End it, and report the peer as lost if the connection had one. */
void tcp_connection_end(struct tcp_connection *connection, int error, bool process_gone, const char *text);
/* End it because the peer violated the protocol. */
void tcp_connection_end_for_violation(struct tcp_connection *connection, const char *what);
/* Log that a peer is rejected: as a warning at most once a second, else for debugging. */
void tcp_refusal_log(const struct tcp_connection *connection, const char *why);
/* Write the queue. True: nothing remains to wait for. */
bool tcp_connection_drain(struct tcp_connection *connection);
void tcp_connections_free_dead(struct tcp_endpoint *endpoint);
/* As ofp_endpoint_ops.peer_down: close with a goodbye. */
void tcp_peer_disconnect(struct ofp_peer *peer);
/* The setup is complete: change to TCP_UP and read messages. */
void tcp_connection_start_messages(struct tcp_connection *connection);

#endif
