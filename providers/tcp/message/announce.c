/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announced messages between ofipy peers. The sender sends TCP_ANNOUNCE and retains the payload if it wants match
 * completion, or if it lacks credit. The receiver sends TCP_PULL when a receive matches; the answer is TCP_PULLED with
 * the payload. Both ids are ids of the core, which does not find stale or forged ones.
 */
#include "message/announce.h"

#include <errno.h>

#include "connection/connection.h"
#include "stream/queue.h"
#include "stream/send.h"

/* Words of TCP_PULL. */
enum { PULL_ID, PULL_RECEIVE, PULL_WANTED };

int tcp_message_announce(struct tcp_connection *connection, const struct ofp_transfer *transfer,
                         struct tcp_header *header)
{
    struct ofp_pending *pending = ofp_transfer_retain(connection->endpoint->base, connection->peer, transfer);

    if (!pending)
        return -EAGAIN;
    pending->protocol = OFP_PROTOCOL_ANNOUNCED;
    tcp_pending_of(pending)->announced = true;
    connection->announced++;
    header->op_data = ofp_operation_row(transfer->op->op)->channel;
    header->op = TCP_ANNOUNCE;
    header->payload = 0;
    /*
     * With delivery completion, and without match completion, the receiver pulls the message before a receive matches.
     */
    header->flags &= (uint16_t)~TCP_FLAG_DELIVERY;
    if ((transfer->op->flags & (OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)) == OFP_DELIVERY_COMPLETE)
        header->flags |= TCP_FLAG_DELIVERY;
    header->length = transfer->length;
    header->words[0] = pending->id;
    tcp_header_send(connection, header);
    if (!(pending->operation.flags & OFP_MORE) && !connection->blocked)
        tcp_queue_flush(connection);
    return OFP_POST_PENDING;
}

bool tcp_pull_requested(struct tcp_connection *connection, const struct tcp_header *header)
{
    struct ofp_pending *pending = ofp_pending_find(connection->peer, header->words[PULL_ID]);
    struct tcp_header answer = {.op = TCP_PULLED, .words = {header->words[PULL_RECEIVE]}};
    bool unacked;

    if (!pending || !tcp_pending_of(pending)->announced) {
        tcp_connection_end_for_violation(connection, "a call for a message that was not announced");
        return false;
    }
    tcp_pending_of(pending)->announced = false;
    OFP_CHECK(connection->announced > 0);
    connection->announced--;
    if (!header->words[PULL_WANTED]) {
        ofp_transfer_complete(pending, 0, 0);
        return true;
    }
    unacked = pending->operation.flags & (OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE);
    answer.flags = unacked ? TCP_FLAG_DELIVERY : 0;
    answer.payload = pending->transfer.length;
    if (tcp_payload_send(connection, &answer, &pending->transfer, pending, unacked) < 0)
        tcp_connection_mark_failed(connection, ENOMEM);
    return true;
}

/* -------------------------------------------------------------------------------------------------------- receiving */

int tcp_announcement_arrived(struct tcp_connection *connection, const struct tcp_header *header)
{
    struct ofp_endpoint *endpoint = connection->endpoint->base;
    struct ofp_receive *receive;
    struct ofp_message message = {
        .peer = connection->peer,
        .source = connection->peer->index,
        .channel = header->op_data,
        .has_data = header->flags & TCP_FLAG_CQ_DATA,
        .extras = OFP_EXTRA_PROTOCOL,
        .protocol = OFP_PROTOCOL_ANNOUNCED,
        .tag = header->tag,
        .data = header->data,
        .length = header->length,
        .provider_data = {[TCP_DATA_METHOD] = TCP_METHOD_PULL,
                          [TCP_DATA_ID] = header->words[0],
                          [TCP_DATA_CONNECTION] = (uint64_t)(uintptr_t)connection},
    };

    if (header->flags & TCP_FLAG_DELIVERY &&
        ofp_message_begin(endpoint, &message, OFP_ROOM_UNEXPECTED, &receive) == 0) {
        tcp_pull_start(receive);
        return 0;
    }
    return ofp_message_announced(endpoint, &message) == 0 ? 0 : -EAGAIN;
}

void tcp_pull_start(struct ofp_receive *receive)
{
    struct tcp_connection *connection =
        (struct tcp_connection *)(uintptr_t)receive->message.provider_data[TCP_DATA_CONNECTION];
    struct tcp_header pull = {.op = TCP_PULL, .words = {[PULL_ID] = receive->message.provider_data[TCP_DATA_ID]}};

    pull.words[PULL_RECEIVE] = receive->id;
    pull.words[PULL_WANTED] = receive->length;
    tcp_header_send(connection, &pull);
    ofp_flush_later(connection->endpoint->base);
    if (!receive->length)
        ofp_receive_complete(receive, 0, 0);
}

struct ofp_receive *tcp_pull_find_receive(struct tcp_connection *connection, const struct tcp_header *header,
                                          const char **wrong)
{
    struct ofp_receive *receive = ofp_receive_find(connection->peer, header->words[0]);

    /* The id belongs to a receive that waits for a rendezvous, or for another length. */
    if (receive && (receive->message.provider_data[TCP_DATA_METHOD] != TCP_METHOD_PULL ||
                    receive->message.length != header->payload)) {
        *wrong = "a message that was not called for";
        return NULL;
    }
    return receive;
}
