/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_SOCKET_H
#define TCP_SOCKET_H

#include "objects.h"

/* Of every connection. */
void tcp_socket_set_options(const struct tcp_endpoint *endpoint, int fd);
/* How it paces what it sends to this address, once its own end is known. */
void tcp_socket_set_congestion_control(const struct tcp_endpoint *endpoint, int fd, const void *address,
                                       socklen_t length);
/* A socket on its way to an address, from ours: 0, or a negative errno. */
int tcp_socket_connect(const struct tcp_endpoint *endpoint, const void *address, socklen_t length, int *fd);
/* The parameter, which is tried out. */
int tcp_congestion_control_read(struct tcp_domain *domain, char *text, size_t text_size);

#endif
