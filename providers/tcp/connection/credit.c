/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credit for eager payload between ofipy peers. A sender charges its credit for each message; without credit it
 * announces the message. A receiver grants a window in its hello, and used credit again when the core has space for it.
 *
 * At each side `credit` is what it may send, `allowance` what the peer may send, `owed` what has been used and not been
 * granted again. The sum of allowance and owed is the granted window: only return_allowance (message.c) reverses a
 * charge. The caller holds the domain's lock.
 */
#include "connection/credit.h"

#include <string.h>

#include "connection/connection.h"
#include "stream/queue.h"
#include "stream/send.h"

enum { HELLO_WINDOW, HELLO_NONCE }; /* words of TCP_HELLO */

/* The share of the unexpected limit that this endpoint can grant each peer, if no message is received. */
static uint64_t compute_window(const struct tcp_endpoint *endpoint)
{
    /* A listener with a key sends its hello before an endpoint exists: it grants the minimum. */
    uint64_t limit = endpoint->base ? endpoint->base->unexpected_limit : 0, peers = 16;

    for (const struct ofp_list *node = endpoint->connections.next; node != &endpoint->connections && peers < 1024;
         node = node->next)
        peers++;
    return limit / peers > TCP_WINDOW_MIN ? limit / peers : TCP_WINDOW_MIN;
}

void tcp_hello_send(struct tcp_connection *connection)
{
    struct tcp_header hello = {.op = TCP_HELLO};

    /* TCP_WINDOW_MIN is granted to every peer before its hello arrives. */
    connection->credit = TCP_WINDOW_MIN;
    connection->allowance = compute_window(connection->endpoint);
    OFP_CHECK(connection->extended && connection->allowance >= TCP_WINDOW_MIN);
    hello.words[HELLO_WINDOW] = connection->allowance - TCP_WINDOW_MIN;
    if (connection->meeting)
        memcpy(hello.words + HELLO_NONCE, connection->meeting->nonce, sizeof(connection->meeting->nonce));
    tcp_header_send(connection, &hello);
    tcp_queue_flush(connection);
}

bool tcp_allowance_charge(struct tcp_connection *connection, uint64_t length)
{
    if (TCP_UNLIKELY(length > connection->allowance || connection->allowance - length < TCP_MESSAGE_COST)) {
        tcp_connection_end_for_violation(connection, "more messages than it was granted room for");
        return false;
    }
    connection->allowance -= length + TCP_MESSAGE_COST;
    connection->owed += length + TCP_MESSAGE_COST;
    return true;
}

static void grant_credit(struct tcp_connection *connection)
{
    struct tcp_header credit = {.op = TCP_CREDIT, .words = {connection->owed}};

    OFP_CHECK(connection->state == TCP_UP && connection->owed > 0);
    /* The core can have space again before the endpoint's next progress, which grants to those that wait. */
    if (ofp_list_linked(&connection->creditor))
        ofp_list_remove(&connection->creditor);
    connection->allowance += connection->owed;
    connection->owed = 0;
    tcp_header_send(connection, &credit);
}

void tcp_credit_grant_share(struct tcp_connection *connection)
{
    uint64_t rest = compute_window(connection->endpoint) - connection->allowance - connection->owed;

    connection->allowance += rest;
    tcp_header_send(connection, &(struct tcp_header){.op = TCP_CREDIT, .words = {rest}});
}

void tcp_credit_grant_owed(struct tcp_connection *connection)
{
    struct tcp_endpoint *endpoint = connection->endpoint;

    /* Grant in large amounts, and not while the core is above its limit of unexpected messages. */
    if (TCP_LIKELY(connection->owed < connection->allowance / 2) || connection->state != TCP_UP)
        return;
    if (!ofp_announce_only(endpoint->base))
        grant_credit(connection);
    else if (!ofp_list_linked(&connection->creditor))
        ofp_list_append(&endpoint->creditors, &connection->creditor);
}

int tcp_credit_grant_deferred(struct tcp_endpoint *endpoint)
{
    struct ofp_list *node;
    int events = 0;

    if (ofp_announce_only(endpoint->base))
        return 0;
    while ((node = ofp_list_pop(&endpoint->creditors))) {
        grant_credit(OFP_CONTAINER_OF(node, struct tcp_connection, creditor));
        events++;
    }
    return events;
}

bool tcp_credit_granted(struct tcp_connection *connection, uint64_t credit)
{
    if (credit > INT64_MAX || connection->credit > INT64_MAX) {
        tcp_connection_end_for_violation(connection, "more credit than there can be");
        return false;
    }
    connection->credit += credit;
    return true;
}

bool tcp_hello_received(struct tcp_connection *connection, const struct tcp_header *header)
{
    if (connection->hello_received) {
        tcp_connection_end_for_violation(connection, "a second greeting");
        return false;
    }
    connection->hello_received = true;
    return tcp_credit_granted(connection, header->words[HELLO_WINDOW]);
}
