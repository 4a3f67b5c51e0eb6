/* SPDX-License-Identifier: BSD-3-Clause */
/* Eager messages, which arrive with their payload. */
#include "message/message.h"

#include <errno.h>

#include "connection/credit.h"
#include "stream/inbound.h"
#include "ofipy/sender.h"
#include "stream/send.h"

bool tcp_message_has_data(const struct tcp_connection *connection, const struct tcp_header *header)
{
    const struct sockaddr *address = connection->peer->address;
    uint64_t sender = header->flags & TCP_FLAG_CQ_DATA && !connection->extended ? ofp_sender_of(header->data) : 0;

    if (sender && address->sa_family == AF_INET && sender == ofp_sender_of_ipv4((const struct sockaddr_in *)address))
        return false;
    return header->flags & TCP_FLAG_CQ_DATA;
}

static inline void fill_message(struct ofp_message *message, const struct tcp_connection *connection,
                                const struct tcp_header *header)
{
    message->peer = connection->peer;
    message->source = connection->peer->index;
    message->channel = tcp_channel_of(header->op);
    message->extras = 0;
    message->has_data = header->flags & TCP_FLAG_CQ_DATA && tcp_message_has_data(connection, header);
    message->tag = header->tag;
    message->data = header->data;
    message->length = header->payload;
}

/* Reverse the charge, since the message will be charged again when it is retried. */
static ssize_t return_allowance(struct tcp_connection *connection, uint64_t length)
{
    if (connection->extended) {
        OFP_CHECK(connection->owed >= length + TCP_MESSAGE_COST);
        connection->allowance += length + TCP_MESSAGE_COST;
        connection->owed -= length + TCP_MESSAGE_COST;
    }
    return -EAGAIN;
}

/* The core is above its limit, but the sender had credit: deliver the message beyond the limit. */
static int deliver_granted_message(struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                   const uint8_t *payload)
{
    struct ofp_receive *receive;

    if (ofp_message_begin(endpoint, message, OFP_ROOM_PROMISED, &receive) != 0)
        return -EAGAIN;
    ofp_receive_write(receive, 0, payload, receive->length);
    ofp_receive_complete(receive, 0, 0);
    return 0;
}

ssize_t tcp_message_deliver(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                            size_t available)
{
    struct ofp_endpoint *endpoint = connection->endpoint->base;
    struct ofp_message message;
    struct ofp_receive *receive;
    enum ofp_room bound = connection->extended ? OFP_ROOM_PROMISED : OFP_ROOM_UNEXPECTED;

    if (TCP_LIKELY(connection->extended) && !tcp_allowance_charge(connection, header->payload))
        return -ECONNABORTED;
    fill_message(&message, connection, header);
    if (TCP_LIKELY(header->payload <= available)) {
        if (TCP_UNLIKELY(ofp_message_arrived(endpoint, &message, payload) != 0) &&
            (!connection->extended || deliver_granted_message(endpoint, &message, payload) != 0))
            return return_allowance(connection, header->payload);
        if (TCP_UNLIKELY(header->flags & TCP_FLAGS_ACK))
            tcp_ack_send(connection, header->flags);
        return (ssize_t)header->payload;
    }
    ofp_message_set_protocol(&message, OFP_PROTOCOL_EAGER);
    if (ofp_message_begin(endpoint, &message, bound, &receive) != 0)
        return return_allowance(connection, header->payload);
    tcp_inbound_start(connection, header, receive);
    return 0;
}
