/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_RECEIVE_H
#define TCP_RECEIVE_H

#include "objects.h"

/* Read what there is, within bounds; returns events. */
int tcp_connection_receive(struct tcp_connection *connection);
/* Hand on what was read before the core had no room. False: it still has none. */
bool tcp_stall_retry(struct tcp_connection *connection);
/* The peer of a stalled connection has ended it, and nobody receives what it sent. */
bool tcp_stall_is_expired(const struct tcp_connection *connection);
/* So the rest of it is dropped. */
void tcp_stall_end(struct tcp_connection *connection);

#endif
