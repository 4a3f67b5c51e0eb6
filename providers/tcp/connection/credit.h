/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_CREDIT_H
#define TCP_CREDIT_H

#include "objects.h"

/* Both sides speak the extension: greet, first of all. */
void tcp_hello_send(struct tcp_connection *connection);
/* Its greeting, or more credit. False: the connection is over. */
bool tcp_hello_received(struct tcp_connection *connection, const struct tcp_header *header);
bool tcp_credit_granted(struct tcp_connection *connection, uint64_t credit);
/* What a message of ours costs there: false: it has to be announced. */
bool tcp_credit_charge(struct tcp_connection *connection, uint64_t length);
/* A message of theirs came whole. False: they were not granted that much, and the connection is over. */
bool tcp_allowance_charge(struct tcp_connection *connection, uint64_t length);
/* Give back what is owed, as soon as there is room. */
void tcp_credit_grant_owed(struct tcp_connection *connection);
int tcp_credit_grant_deferred(struct tcp_endpoint *endpoint);

#endif
