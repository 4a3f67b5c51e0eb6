/* SPDX-License-Identifier: BSD-3-Clause */
/* What each kind of message means. */
#include <errno.h>

#include "tcp.h"

void tcp_acknowledge(struct tcp_connection *connection, uint16_t flags)
{
    struct tcp_header ack = {.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK};

    if (flags & TCP_FLAGS_ACK)
        tcp_send_header(connection, &ack);
}

static inline void fill_message(struct ofp_message *message, const struct tcp_connection *connection,
                                const struct tcp_header *header)
{
    message->peer = connection->peer;
    message->source = connection->peer->index;
    message->tagged = header->op == TCP_TAG;
    message->has_data = header->flags & TCP_FLAG_CQ_DATA;
    message->tag = header->tag;
    message->data = header->data;
    message->length = header->payload;
}

static ssize_t deliver_message(struct tcp_connection *connection, const struct tcp_header *header,
                               const uint8_t *payload, size_t available)
{
    struct ofp_endpoint *endpoint = connection->endpoint->base;
    struct ofp_message message;
    struct ofp_receive *receive;

    fill_message(&message, connection, header);
    if (TCP_LIKELY(header->payload <= available)) {
        if (tcp_core->message_arrived(endpoint, &message, payload) != 0)
            return -EAGAIN;
        if (TCP_UNLIKELY(header->flags & TCP_FLAGS_ACK))
            tcp_acknowledge(connection, header->flags);
        return (ssize_t)header->payload;
    }
    if (tcp_core->message_begin(endpoint, &message, false, &receive) != 0)
        return -EAGAIN;
    tcp_inbound_receive(connection, header, receive);
    return 0;
}

static ssize_t deliver_data(struct tcp_connection *connection, const struct tcp_header *header)
{
    const char *wrong = NULL;
    struct ofp_receive *receive = tcp_rendezvous_data(connection, header, &wrong);

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
        return tcp_rma_answer(connection, header) ? 0 : -ECONNABORTED;
    case TCP_WRITE:
        return tcp_rma_write(connection, header) ? 0 : -ECONNABORTED;
    case TCP_TAG_RTS:
        return tcp_rendezvous_requested(connection, header);
    case TCP_CTS:
        tcp_rendezvous_cleared(connection, header->op_data);
        return 0;
    case TCP_DATA:
        return deliver_data(connection, header);
    default:
        tcp_connection_violation(connection, "an unknown operation");
        return -ECONNABORTED;
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
        tcp_core->receive_complete(in->receive, 0, 0);
        break;
    case TCP_TARGET_READ:
        tcp_rma_have_read(connection);
        return;
    case TCP_TARGET_WRITE:
        tcp_rma_written(connection);
        break;
    default: /* nobody's any more: its sender is told all the same */
        break;
    }
    tcp_acknowledge(connection, flags);
}
