/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_LISTEN_H
#define TCP_LISTEN_H

#include "objects.h"

/* Bind a socket to endpoint->address, and store the port there. */
int tcp_listener_bind(struct tcp_endpoint *endpoint, const char *service, char *text, size_t text_size);
int tcp_listener_start(struct tcp_endpoint *endpoint);
void tcp_listener_close(struct tcp_endpoint *endpoint);
void tcp_listener_accept(struct tcp_endpoint *endpoint);

#endif
