/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_SOCKET_H
#define TCP_SOCKET_H

#include "objects.h"

/* Set the options that every connection needs. */
void tcp_socket_set_options(const struct tcp_endpoint *endpoint, int fd);
/* Mark what the socket sends with the endpoint's traffic class, on a socket of IPv6 its packets of IPv4 too. */
void tcp_socket_set_traffic_class(const struct tcp_endpoint *endpoint, int fd);
/* Choose the congestion control for this peer. Call this when the socket's own address is known. */
void tcp_socket_set_congestion_control(const struct tcp_endpoint *endpoint, int fd, const void *address,
                                       socklen_t length);
/* The address of the socket's own end. False: it has none. */
bool tcp_socket_get_address(int fd, union tcp_address *address);
/* The address of the other end. False: the socket is not connected. */
bool tcp_socket_get_peer_address(int fd, union tcp_address *address);
/* How a connect() without blocking has ended: 0: connected; EAGAIN: not yet; another errno: failed. */
int tcp_socket_check_connect(int fd);
/* Open a socket that connects from the endpoint's address. 0, or a negative errno. */
int tcp_socket_connect(const struct tcp_endpoint *endpoint, const void *address, socklen_t length, int *fd);
/* Read the parameter, and verify that the kernel accepts it. */
int tcp_congestion_control_read(struct tcp_domain *domain, char *text, size_t text_size);

#endif
