/* SPDX-License-Identifier: BSD-3-Clause */
/* What each kind of message means. */
#include <errno.h>

#include "ofipy/sender.h"
#include "tcp.h"

void tcp_acknowledge(struct tcp_connection *connection, uint16_t flags)
{
    struct tcp_header ack = {.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK};

    if (flags & TCP_FLAGS_ACK)
        tcp_send_header(connection, &ack);
}

bool tcp_has_data(const struct tcp_connection *connection, const struct tcp_header *header)
{
    const struct sockaddr *address = connection->peer->address;
    uint64_t who = header->flags & TCP_FLAG_CQ_DATA && !connection->extended ? ofp_sender_of(header->data) : 0;

    if (who && address->sa_family == AF_INET && who == ofp_sender_of_ipv4((const struct sockaddr_in *)address))
        return false;
    return header->flags & TCP_FLAG_CQ_DATA;
}

static inline void fill_message(struct ofp_message *message, const struct tcp_connection *connection,
                                const struct tcp_header *header)
{
    message->peer = connection->peer;
    message->source = connection->peer->index;
    message->tagged = header->op == TCP_TAG;
    message->extras = 0;
    message->has_data = header->flags & TCP_FLAG_CQ_DATA && tcp_has_data(connection, header);
    message->tag = header->tag;
    message->data = header->data;
    message->length = header->payload;
}

/* It will be charged again when it is tried again. */
static ssize_t not_taken(struct tcp_connection *connection, uint64_t length)
{
    if (connection->extended) {
        connection->allowance += length + TCP_MESSAGE_COST;
        connection->owed -= length + TCP_MESSAGE_COST;
    }
    return -EAGAIN;
}

/* The core is full, but the sender was granted the room. */
static int keep_promise(struct ofp_endpoint *endpoint, const struct ofp_message *message, const uint8_t *payload)
{
    struct ofp_receive *receive;

    if (ofp_message_begin(endpoint, message, true, &receive) != 0)
        return -EAGAIN;
    ofp_receive_write(receive, 0, payload, receive->length);
    ofp_receive_complete(receive, 0, 0);
    return 0;
}

static ssize_t deliver_message(struct tcp_connection *connection, const struct tcp_header *header,
                               const uint8_t *payload, size_t available)
{
    struct ofp_endpoint *endpoint = connection->endpoint->base;
    struct ofp_message message;
    struct ofp_receive *receive;

    if (TCP_LIKELY(connection->extended) && !tcp_credit_charge(connection, header->payload))
        return -ECONNABORTED;
    fill_message(&message, connection, header);
    if (TCP_LIKELY(header->payload <= available)) {
        if (TCP_UNLIKELY(ofp_message_arrived(endpoint, &message, payload) != 0) &&
            (!connection->extended || keep_promise(endpoint, &message, payload) != 0))
            return not_taken(connection, header->payload);
        if (TCP_UNLIKELY(header->flags & TCP_FLAGS_ACK))
            tcp_acknowledge(connection, header->flags);
        return (ssize_t)header->payload;
    }
    if (ofp_message_begin(endpoint, &message, connection->extended, &receive) != 0)
        return not_taken(connection, header->payload);
    tcp_inbound_receive(connection, header, receive);
    return 0;
}

static ssize_t deliver_data(struct tcp_connection *connection, const struct tcp_header *header)
{
    const char *wrong = NULL;
    struct ofp_receive *receive = header->op == TCP_PULLED ? tcp_pulled(connection, header, &wrong)
                                                           : tcp_rendezvous_data(connection, header, &wrong);

    if (wrong) {
        tcp_connection_violation(connection, wrong);
        return -ECONNABORTED;
    }
    tcp_inbound_receive(connection, header, receive);
    if (!header->payload)
        tcp_delivered(connection);
    return 0;
}

static ssize_t deliver_ack(struct tcp_connection *connection)
{
    if (tcp_pending_acked(connection, 0, 0))
        return 0;
    tcp_connection_violation(connection, "an acknowledgement of nothing");
    return -ECONNABORTED;
}

ssize_t tcp_deliver(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                    size_t available)
{
    if (TCP_UNLIKELY(connection->extended && !connection->greeted && header->op != TCP_HELLO)) {
        tcp_connection_violation(connection, "no greeting");
        return -ECONNABORTED;
    }
    switch (header->op) {
    case TCP_TAG:
        return deliver_message(connection, header, payload, available);
    case TCP_MSG:
        if (tcp_is_ack(header))
            return deliver_ack(connection);
        return deliver_message(connection, header, payload, available);
    case TCP_READ_REQ:
        return tcp_rma_read(connection, header) ? 0 : -ECONNABORTED;
    case TCP_READ_RSP:
    case TCP_FETCHED:
        return tcp_rma_answer(connection, header) ? 0 : -ECONNABORTED;
    case TCP_WRITE:
        return tcp_rma_write(connection, header) ? 0 : -ECONNABORTED;
    case TCP_TAG_RTS:
        return tcp_rendezvous_requested(connection, header);
    case TCP_CTS:
        tcp_rendezvous_cleared(connection, header->op_data);
        return 0;
    case TCP_DATA:
    case TCP_PULLED:
        return deliver_data(connection, header);
    case TCP_ANNOUNCE:
        return tcp_announced(connection, header);
    case TCP_PULL:
        return tcp_pulled_at(connection, header) ? 0 : -ECONNABORTED;
    case TCP_ATOMIC:
        return tcp_atomic_requested(connection, header, payload, available);
    default:
        return tcp_extension_deliver(connection, header) ? 0 : -ECONNABORTED;
    }
}

void tcp_delivered(struct tcp_connection *connection)
{
    struct tcp_inbound *in = &connection->in;
    uint8_t target = in->target;
    uint16_t flags = in->flags;

    in->target = TCP_TARGET_NONE;
    switch (target) {
    case TCP_TARGET_RECEIVE:
        ofp_receive_complete(in->receive, 0, 0);
        break;
    case TCP_TARGET_READ:
        tcp_rma_have_read(connection);
        return;
    case TCP_TARGET_WRITE:
        tcp_rma_written(connection);
        break;
    case TCP_TARGET_ATOMIC:
        tcp_atomic_execute(connection, in->operands);
        return;
    default: /* nobody's any more: its sender is told all the same */
        if (TCP_UNLIKELY(in->refused)) {
            tcp_send_refusal(connection, TCP_REFUSED_ACK, in->refused);
            in->refused = 0;
            return;
        }
        break;
    }
    tcp_acknowledge(connection, flags);
}
