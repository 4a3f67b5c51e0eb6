/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_RECEIVE_H
#define TCP_RECEIVE_H

#include "objects.h"

/* Read and handle input, up to a bound. Returns the number of events. */
int tcp_connection_receive(struct tcp_connection *connection);
/* Handle the stash again. False: the core still has no space. */
bool tcp_stall_retry(struct tcp_connection *connection);
/* Whether the peer of a stalled connection hung up, and no receive has accepted its input for HANGUP_TIMEOUT. */
bool tcp_stall_is_expired(const struct tcp_connection *connection);
/* Discard the stash, and end the connection. */
void tcp_stall_end(struct tcp_connection *connection);

#endif
