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
static bool needs_rendezvous(const struct tcp_connection *connection, const struct tcp_header *header)
{
    uint64_t head =
        TCP_HEADER_BASE + sizeof(header->tag) + (header->flags & TCP_FLAG_CQ_DATA ? sizeof(header->data) : 0);

    return connection->can_rendezvous && head + header->payload > connection->endpoint->domain->rendezvous_size;
}

static int post_message(struct tcp_connection *connection, const struct ofp_transfer *transfer)
{
    static const uint8_t ops[] = {
        [OFP_CHANNEL_MESSAGE] = TCP_MSG, [OFP_CHANNEL_TAGGED] = TCP_TAG, [OFP_CHANNEL_INTERNAL] = TCP_INTERNAL};
    const struct ofp_operation *op = transfer->op;
    uint8_t channel = ofp_operation_row(op->op)->channel;
    bool tagged = channel == OFP_CHANNEL_TAGGED;
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
        if (TCP_UNLIKELY(op->flags & OFP_MATCH_COMPLETE) || !tcp_credit_charge(connection, transfer->length))
            return tcp_message_announce(connection, transfer, &header);
        result = tcp_payload_send(connection, &header, transfer, NULL, op->flags & TCP_LEVELS);
        if (TCP_UNLIKELY(result < 0))
            connection->credit += transfer->length + TCP_MESSAGE_COST;
        return result;
    }
    /* libfabric's MSG endpoints fail on tagged messages. */
    if (tagged && connection->endpoint->connects)
        return -EOPNOTSUPP;
    if (TCP_UNLIKELY(tagged && needs_rendezvous(connection, &header)))
        return tcp_rendezvous_send(connection, transfer, &header);
    if (!(op->flags & TCP_LEVELS))
        return tcp_payload_send(connection, &header, transfer, NULL, false);
    /* libfabric acknowledges tagged messages before they match. A rendezvous is cleared when it matches. */
    if (op->flags & OFP_MATCH_COMPLETE && tagged)
        return connection->can_rendezvous ? tcp_rendezvous_send(connection, transfer, &header) : -EOPNOTSUPP;
    return tcp_payload_send(connection, &header, transfer, NULL, true);
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
