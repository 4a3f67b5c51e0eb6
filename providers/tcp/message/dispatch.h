/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_DISPATCH_H
#define TCP_DISPATCH_H

#include "objects.h"

/*
 * A whole header, with `available` bytes of payload behind it. Returns how many of them were used; what of the payload is
 * missing goes where connection->in says. -EAGAIN: no room, nothing has happened; -ECONNABORTED: the connection is over.
 */
ssize_t tcp_header_received(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                            size_t available);
/* The payload of connection->in is complete. */
void tcp_payload_received(struct tcp_connection *connection);

#endif
