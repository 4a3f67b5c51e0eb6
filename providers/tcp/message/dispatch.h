/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_DISPATCH_H
#define TCP_DISPATCH_H

#include "objects.h"

/*
 * Handle a whole header, with `available` bytes of payload behind it. Returns how many of these were used; the rest of
 * the payload goes to the destination in connection->in. -EAGAIN: the core has no space, and nothing has changed;
 * -ECONNABORTED: the connection is over.
 */
ssize_t tcp_header_received(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                            size_t available);
/* Handle the end of the payload in connection->in. */
void tcp_payload_received(struct tcp_connection *connection);

#endif
