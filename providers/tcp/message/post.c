/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: which wire message each operation uses, for ofipy and libfabric peers. */
#include "message/post.h"

#include <errno.h>

#include "message/announce.h"
#include "message/atomic.h"
#include "connection/credit.h"
#include "message/rendezvous.h"
#include "message/rma.h"
#include "stream/send.h"

/*
 * Whether a libfabric peer may refuse to store the message if it is unexpected, and stop reading. The size is computed
 * as libfabric computes it.
 */
static bool needs_rendezvous(const struct tcp_connection *connection, uint64_t length, bool has_data)
{
    uint64_t head = TCP_HEADER_BASE + sizeof(uint64_t) + (has_data ? sizeof(uint64_t) : 0);

    return connection->can_rendezvous && head + length > connection->endpoint->domain->rendezvous_size;
}

/* libfabric acknowledges tagged messages before they match. A rendezvous is cleared when it matches. */
static inline enum ofp_protocol choose_message_protocol(const struct tcp_connection *connection, uint64_t length,
                                                        uint64_t op_flags, bool tagged)
{
    bool announced;

    if (TCP_LIKELY(connection->extended))
        announced = op_flags & OFP_MATCH_COMPLETE || !tcp_credit_is_enough(connection, length);
    else
        announced = tagged && (op_flags & OFP_MATCH_COMPLETE ||
                               needs_rendezvous(connection, length, op_flags & OFP_REMOTE_CQ_DATA));
    return announced ? OFP_PROTOCOL_ANNOUNCED : OFP_PROTOCOL_EAGER;
}

static int post_message(struct tcp_connection *connection, const struct ofp_transfer *transfer)
{
    static const uint8_t ops[] = {
        [OFP_CHANNEL_MESSAGE] = TCP_MSG, [OFP_CHANNEL_TAGGED] = TCP_TAG, [OFP_CHANNEL_INTERNAL] = TCP_INTERNAL};
    const struct ofp_operation *op = transfer->op;
    uint8_t channel = ofp_operation_row(op->op)->channel;
    bool tagged = channel == OFP_CHANNEL_TAGGED;
    enum ofp_protocol protocol = choose_message_protocol(connection, transfer->length, op->flags, tagged);
    struct tcp_header header;
    int result;

    if (TCP_UNLIKELY(channel == OFP_CHANNEL_INTERNAL && !connection->knows_internal))
        return -EOPNOTSUPP;
    header.op = ops[channel];
    header.op_data = 0;
    header.remote_count = 0;
    header.flags = op->flags & OFP_REMOTE_CQ_DATA ? TCP_FLAG_CQ_DATA : 0;
    header.payload = transfer->length;
    header.data = op->data;
    header.tag = op->tag;
    if (op->flags & TCP_LEVELS)
        header.flags |= TCP_FLAG_DELIVERY;
    if (TCP_LIKELY(connection->extended)) {
        if (TCP_UNLIKELY(protocol == OFP_PROTOCOL_ANNOUNCED))
            return tcp_message_announce(connection, transfer, &header);
        tcp_credit_charge(connection, transfer->length);
        result = tcp_payload_send(connection, &header, transfer, NULL, op->flags & TCP_LEVELS);
        if (TCP_UNLIKELY(result < 0))
            connection->credit += transfer->length + TCP_MESSAGE_COST;
        return result;
    }
    /* libfabric's MSG endpoints fail on tagged messages. */
    if (tagged && connection->endpoint->connects)
        return -EOPNOTSUPP;
    if (TCP_UNLIKELY(protocol == OFP_PROTOCOL_ANNOUNCED))
        return connection->can_rendezvous ? tcp_rendezvous_send(connection, transfer, &header) : -EOPNOTSUPP;
    return tcp_payload_send(connection, &header, transfer, NULL, op->flags & TCP_LEVELS);
}

static enum ofp_protocol_reason choose_reason(const struct tcp_connection *connection, enum ofp_protocol protocol)
{
    if (connection->extended)
        /* Credit stands for memory that the receiver has for messages without a receive. */
        return protocol == OFP_PROTOCOL_ANNOUNCED ? OFP_PROTOCOL_BY_MEMORY : OFP_PROTOCOL_BY_THRESHOLD;
    return connection->can_rendezvous ? OFP_PROTOCOL_BY_THRESHOLD : OFP_PROTOCOL_FORCED;
}

bool tcp_protocol_choose(const struct ofp_peer *peer, const struct ofp_protocol_query *query,
                         struct ofp_protocol_choice *choice)
{
    const struct tcp_connection *connection = tcp_peer_of(peer)->connection;

    if (!connection || query->received)
        return false;
    choice->protocol = choose_message_protocol(connection, query->length, 0, !connection->endpoint->connects);
    choice->reason = choose_reason(connection, choice->protocol);
    return true;
}

int tcp_transfer_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct tcp_connection *connection = tcp_peer_of(peer)->connection;

    (void)base;
    /* The peer is about to be marked lost. The core stores the operation until then. */
    if (TCP_UNLIKELY(!connection || connection->state != TCP_UP || connection->shut || connection->failure))
        return -EAGAIN;
    if (TCP_LIKELY(!ofp_operation_is(transfer->op->op, OFP_REMOTE)))
        return post_message(connection, transfer);
    if (!ofp_operation_is(transfer->op->op, OFP_ATOMIC_KIND))
        return tcp_rma_post(connection, transfer);
    return connection->extended ? tcp_atomic_post(connection, transfer) : -EOPNOTSUPP;
}
