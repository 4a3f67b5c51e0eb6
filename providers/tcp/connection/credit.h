/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_CREDIT_H
#define TCP_CREDIT_H

#include "objects.h"

/* Send the hello, before anything else. Both sides have agreed to the extension. */
void tcp_hello_send(struct tcp_connection *connection);
/* Handle the peer's hello, or further credit. False: the connection is over. */
bool tcp_hello_received(struct tcp_connection *connection, const struct tcp_header *header);
bool tcp_credit_granted(struct tcp_connection *connection, uint64_t credit);
/* Whether there is credit for a message of ours. Without, the message must be announced. */
static inline bool tcp_credit_is_enough(const struct tcp_connection *connection, uint64_t length)
{
    return length <= connection->credit && connection->credit - length >= TCP_MESSAGE_COST;
}
/* Charge the credit for a message of ours; there is enough. */
static inline void tcp_credit_charge(struct tcp_connection *connection, uint64_t length)
{
    connection->credit -= length + TCP_MESSAGE_COST;
}
/* Charge the peer's allowance for its message. False: it exceeded the allowance, and the connection is over. */
bool tcp_allowance_charge(struct tcp_connection *connection, uint64_t length);
/* Grant the rest of the endpoint's share to a peer whose hello came from the listener. */
void tcp_credit_grant_share(struct tcp_connection *connection);
/* Grant the owed credit again, now or when the core has space. */
void tcp_credit_grant_owed(struct tcp_connection *connection);
int tcp_credit_grant_deferred(struct tcp_endpoint *endpoint);

#endif
