/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_MESSAGE_H
#define TCP_MESSAGE_H

#include "objects.h"

/*
 * Whether the remote CQ data are the user's. A libfabric sender may identify itself there, for receivers that cannot
 * know the source otherwise; here the connection's peer is the source. The connection must have a peer.
 */
bool tcp_message_has_data(const struct tcp_connection *connection, const struct tcp_header *header);
/* Deliver a message to the core. Returns as tcp_header_received. */
ssize_t tcp_message_deliver(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                            size_t available);

#endif
