/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_RENDEZVOUS_H
#define TCP_RENDEZVOUS_H

#include "objects.h"

int tcp_rendezvous_send(struct tcp_connection *connection, const struct ofp_transfer *transfer,
                        struct tcp_header *header);
int tcp_rendezvous_requested(struct tcp_connection *connection, const struct tcp_header *header);
void tcp_rendezvous_cleared(struct tcp_connection *connection, uint8_t id);
/* The receive that the payload is for. NULL: it was cancelled, or (*wrong is set) the payload was not cleared. */
struct ofp_receive *tcp_rendezvous_find_receive(struct tcp_connection *connection, const struct tcp_header *header,
                                                const char **wrong);
void tcp_receive_start(struct ofp_endpoint *base, struct ofp_receive *receive);

#endif
