/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What peers of ours may send each other eagerly. Each grants room when it greets, which is the first that it says, and gives back what
 * was used when there is room again.
 */
#include "connection/credit.h"

#include <errno.h>
#include <string.h>

#include "connection/connection.h"
#include "stream/queue.h"
#include "stream/send.h"

/* Words of TCP_HELLO. */
enum { HELLO_WINDOW, HELLO_NONCE };

/* What an endpoint with so many peers can promise each, if all of them send what nobody receives. */
static uint64_t compute_window(const struct tcp_endpoint *endpoint)
{
    /* A listener that has a key greets before there is an endpoint. */
    uint64_t limit = endpoint->base ? endpoint->base->unexpected_limit : tcp_core->param_size("UNEXPECTED_SIZE");
    uint64_t peers = 16, window;

    for (const struct ofp_list *node = endpoint->connections.next; node != &endpoint->connections && peers < 1024;
         node = node->next)
        peers++;
    window = limit / peers;
    return window > TCP_WINDOW_MIN ? window : TCP_WINDOW_MIN;
}

void tcp_hello_send(struct tcp_connection *connection)
{
    struct tcp_header hello = {.op = TCP_HELLO};

    /* Everybody has the least before the greeting is here. */
    connection->credit = TCP_WINDOW_MIN;
    connection->allowance = compute_window(connection->endpoint);
    hello.words[HELLO_WINDOW] = connection->allowance - TCP_WINDOW_MIN;
    if (connection->meeting)
        memcpy(hello.words + HELLO_NONCE, connection->meeting->nonce, sizeof(connection->meeting->nonce));
    tcp_header_send(connection, &hello);
    tcp_queue_flush(connection);
}

/* ----------------------------------------------------------------------------------------------------------- credit */

bool tcp_credit_charge(struct tcp_connection *connection, uint64_t length)
{
    if (TCP_UNLIKELY(length > connection->credit || connection->credit - length < TCP_MESSAGE_COST))
        return false;
    connection->credit -= length + TCP_MESSAGE_COST;
    return true;
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

    connection->allowance += connection->owed;
    connection->owed = 0;
    tcp_header_send(connection, &credit);
}

void tcp_credit_grant_owed(struct tcp_connection *connection)
{
    struct tcp_endpoint *endpoint = connection->endpoint;

    /* Not for every message, and while what is kept is above its bound not at all. */
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
