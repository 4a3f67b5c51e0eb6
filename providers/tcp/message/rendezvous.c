/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tagged rendezvous with libfabric peers. The sender announces a message under an id of one byte (TCP_TAG_RTS), the
 * receiver clears it when a receive matches (TCP_CTS), and the payload follows (TCP_DATA). Each direction has its own
 * ids. We use it for match completion and, if TCP_RENDEZVOUS_SIZE says so, for large messages; libfabric uses it for
 * large messages, if configured.
 */
#include "message/rendezvous.h"

#include <errno.h>
#include <stdlib.h>

#include "message/announce.h"
#include "connection/connection.h"
#include "message/message.h"
#include "stream/queue.h"
#include "stream/send.h"

#define IDS 256
#define LAST_ID 254

/* State of an id that the peer uses. */
enum incoming_state { INCOMING_NONE, INCOMING_ANNOUNCED, INCOMING_CLEARED };

struct tcp_rendezvous {
    struct ofp_pending *sent[IDS];
    struct {
        uint8_t state;
        uint64_t receive, length;
    } incoming[IDS];
};

static struct tcp_rendezvous *allocate_rendezvous(struct tcp_connection *connection)
{
    if (!connection->rendezvous)
        connection->rendezvous = calloc(1, sizeof(*connection->rendezvous));
    return connection->rendezvous;
}

/* ---------------------------------------------------------------------------------------------------------- sending */

/* Ids are used in turn, across the connections of an endpoint, so that a late clearance finds no new message. */
static uint8_t allocate_id(struct tcp_connection *connection)
{
    uint8_t *last = &connection->endpoint->rendezvous_last;

    for (unsigned i = 0; i < LAST_ID; i++) {
        *last = *last == LAST_ID ? 1 : (uint8_t)(*last + 1);
        if (!connection->rendezvous->sent[*last])
            return *last;
    }
    return 0;
}

int tcp_rendezvous_send(struct tcp_connection *connection, const struct ofp_transfer *transfer,
                        struct tcp_header *header)
{
    struct tcp_rendezvous *rendezvous = allocate_rendezvous(connection);
    uint8_t id = rendezvous ? allocate_id(connection) : 0;
    struct ofp_pending *pending;

    if (!id)
        return -EAGAIN;
    pending = ofp_transfer_retain(connection->endpoint->base, connection->peer, transfer);
    if (!pending)
        return -EAGAIN;
    rendezvous->sent[id] = pending;
    pending->protocol = OFP_PROTOCOL_ANNOUNCED;
    tcp_pending_of(pending)->rendezvous = id;
    header->op = TCP_TAG_RTS;
    header->op_data = id;
    header->payload = 0;
    header->length = transfer->length;
    tcp_header_send(connection, header);
    if (!(pending->operation.flags & OFP_MORE) && !connection->blocked)
        tcp_queue_flush(connection);
    return OFP_POST_PENDING;
}

void tcp_rendezvous_cleared(struct tcp_connection *connection, uint8_t id)
{
    struct tcp_header header = {.op = TCP_DATA, .op_data = id};
    struct ofp_pending *pending = connection->rendezvous ? connection->rendezvous->sent[id] : NULL;
    bool unacked;

    /* libfabric may send a clearance that belongs to an earlier connection. */
    if (!pending)
        return;
    connection->rendezvous->sent[id] = NULL;
    unacked = pending->operation.flags & TCP_LEVELS;
    /* The flags of the announcement. */
    header.flags =
        (unacked ? TCP_FLAG_DELIVERY : 0) | (pending->operation.flags & OFP_REMOTE_CQ_DATA ? TCP_FLAG_CQ_DATA : 0);
    header.payload = pending->transfer.length;
    if (tcp_payload_send(connection, &header, &pending->transfer, pending, unacked) < 0)
        tcp_connection_mark_failed(connection, ENOMEM);
}

/* -------------------------------------------------------------------------------------------------------- receiving */

int tcp_rendezvous_requested(struct tcp_connection *connection, const struct tcp_header *header)
{
    struct tcp_rendezvous *rendezvous = allocate_rendezvous(connection);
    struct ofp_message message = {
        .peer = connection->peer,
        .source = connection->peer->index,
        .channel = OFP_CHANNEL_TAGGED,
        .has_data = tcp_message_has_data(connection, header),
        .extras = OFP_EXTRA_PROTOCOL,
        .protocol = OFP_PROTOCOL_ANNOUNCED,
        .tag = header->tag,
        .data = header->data,
        .length = header->length,
        .provider_data = {[TCP_DATA_METHOD] = TCP_METHOD_RENDEZVOUS,
                          [TCP_DATA_ID] = header->op_data,
                          [TCP_DATA_CONNECTION] = (uint64_t)(uintptr_t)connection},
    };

    if (!rendezvous)
        return -EAGAIN;
    if (!connection->can_rendezvous || rendezvous->incoming[header->op_data].state != INCOMING_NONE) {
        tcp_connection_end_for_violation(connection, "a rendezvous that was not agreed, or under an id in use");
        return -ECONNABORTED;
    }
    rendezvous->incoming[header->op_data].state = INCOMING_ANNOUNCED;
    rendezvous->incoming[header->op_data].length = header->length;
    if (ofp_message_announced(connection->endpoint->base, &message) == 0)
        return 0;
    rendezvous->incoming[header->op_data].state = INCOMING_NONE;
    return -EAGAIN;
}

void tcp_receive_start(struct ofp_endpoint *base, struct ofp_receive *receive)
{
    /*
     * The connection is valid: the core removes a peer's announced messages when the peer is lost, and its connection
     * ends only then.
     */
    struct tcp_connection *connection =
        (struct tcp_connection *)(uintptr_t)receive->message.provider_data[TCP_DATA_CONNECTION];
    uint8_t id = (uint8_t)receive->message.provider_data[TCP_DATA_ID];
    struct tcp_header header = {.op = TCP_CTS, .op_data = id};

    (void)base;
    if (receive->message.provider_data[TCP_DATA_METHOD] == TCP_METHOD_PULL) {
        tcp_pull_start(receive);
        return;
    }
    OFP_CHECK(connection->rendezvous->incoming[id].state == INCOMING_ANNOUNCED);
    connection->rendezvous->incoming[id].state = INCOMING_CLEARED;
    connection->rendezvous->incoming[id].receive = receive->id;
    tcp_header_send(connection, &header);
    ofp_flush_later(connection->endpoint->base);
}

struct ofp_receive *tcp_rendezvous_find_receive(struct tcp_connection *connection, const struct tcp_header *header,
                                                const char **wrong)
{
    struct tcp_rendezvous *rendezvous = connection->rendezvous;
    unsigned id = header->op_data;

    if (!rendezvous || rendezvous->incoming[id].state != INCOMING_CLEARED) {
        *wrong = "the payload of a rendezvous that was not cleared";
        return NULL;
    }
    if (header->payload != rendezvous->incoming[id].length) {
        *wrong = "a rendezvous of another length than announced";
        return NULL;
    }
    rendezvous->incoming[id].state = INCOMING_NONE;
    return ofp_receive_find(connection->peer, rendezvous->incoming[id].receive);
}
