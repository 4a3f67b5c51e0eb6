/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ATOMIC_H
#define TCP_ATOMIC_H

#include "objects.h"

int tcp_atomic_post(struct tcp_connection *connection, const struct ofp_transfer *transfer);
/* Returns as tcp_header_received. */
ssize_t tcp_atomic_requested(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                             size_t available);
void tcp_atomic_execute(struct tcp_connection *connection, struct tcp_operands *operands);

#endif
