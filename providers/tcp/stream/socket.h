/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_SOCKET_H
#define TCP_SOCKET_H

#include "objects.h"

/* Of every connection; `address`: at its other end. */
void tcp_socket_options(const struct tcp_endpoint *endpoint, int fd, const void *address, socklen_t length);
/* The parameter, which is tried out. */
int tcp_congestion_control_read(struct tcp_domain *domain, char *text, size_t text_size);

#endif
