/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_MESSAGE_H
#define TCP_MESSAGE_H

#include "objects.h"

/*
 * Whether remote CQ data came along that are the user's: a sender over libfabric may have named itself there for peers that
 * are not told who it is, which we are. The connection has its peer.
 */
bool tcp_message_has_data(const struct tcp_connection *connection, const struct tcp_header *header);
/* Hand a message on. Returns as tcp_header_received. */
ssize_t tcp_message_deliver(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                            size_t available);

#endif
