/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote reads and writes, from both sides. libfabric's protocol cannot reject one: for libfabric peers an invalid
 * request ends the connection; an ofipy peer receives TCP_REFUSED.
 */
#include "message/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/access.h"
#include "connection/connection.h"
#include "stream/inbound.h"
#include "stream/queue.h"
#include "stream/send.h"

/* ------------------------------------------------------------------------------------------------- our own requests */

static void fill_remote_segments(struct tcp_header *header, const struct ofp_transfer *transfer)
{
    header->remote_count = (uint8_t)transfer->remote_count;
    for (uint32_t i = 0; i < transfer->remote_count; i++)
        header->remote[i] = transfer->remote[i];
}

/* An acknowledged write arrives behind those before it, so its acknowledgement is theirs too. */
static void store_unacked_write(struct tcp_connection *connection, const struct ofp_transfer *transfer, bool acked)
{
    OFP_CHECK(!connection->extended);
    connection->unacked_write = !acked && (transfer->length || connection->unacked_write);
    if (acked || !transfer->length)
        return;
    connection->unacked_offset = transfer->remote[0].offset;
    connection->unacked_key = transfer->remote[0].key;
}

static int post_write(struct tcp_connection *connection, const struct ofp_transfer *transfer)
{
    struct tcp_header header = {.op = TCP_WRITE, .payload = transfer->length, .data = transfer->op->data};
    /* An ofipy peer acknowledges every write, since it may reject it. */
    bool unacked = connection->extended || transfer->op->flags & TCP_LEVELS;
    int result;

    fill_remote_segments(&header, transfer);
    header.flags = (uint16_t)((transfer->op->flags & OFP_REMOTE_CQ_DATA ? TCP_FLAG_CQ_DATA : 0) |
                              (unacked ? TCP_FLAG_DELIVERY : 0));
    result = tcp_payload_send(connection, &header, transfer, NULL, unacked);
    if (TCP_UNLIKELY(!connection->extended) && result >= 0)
        store_unacked_write(connection, transfer, unacked);
    return result;
}

bool tcp_peer_needs_flush(const struct ofp_peer *peer, struct ofp_remote_segment *there)
{
    const struct tcp_connection *connection = tcp_peer_of(peer)->connection;

    if (!connection || connection->extended || !connection->unacked_write)
        return false;
    *there = (struct ofp_remote_segment){.offset = connection->unacked_offset, .key = connection->unacked_key};
    return true;
}

static int post_read(struct tcp_connection *connection, const struct ofp_transfer *transfer)
{
    struct tcp_header header = {.op = TCP_READ_REQ};
    struct ofp_pending *pending;

    if (connection->read_count >= TCP_READS_MAX)
        return -EAGAIN;
    pending = ofp_transfer_retain(connection->endpoint->base, connection->peer, transfer);
    if (!pending)
        return -EAGAIN;
    connection->read_count++;
    ofp_list_append(&connection->reads, &tcp_pending_of(pending)->node);
    fill_remote_segments(&header, &pending->transfer);
    tcp_header_send(connection, &header);
    if (!(pending->operation.flags & OFP_MORE) && !connection->blocked)
        tcp_queue_flush(connection);
    return OFP_POST_PENDING;
}

int tcp_rma_post(struct tcp_connection *connection, const struct ofp_transfer *transfer)
{
    if (transfer->op->op == OFP_WRITE)
        return post_write(connection, transfer);
    return post_read(connection, transfer);
}

bool tcp_rma_read_answered(struct tcp_connection *connection, const struct tcp_header *header)
{
    struct tcp_inbound *in = &connection->in;
    struct tcp_pending *first = OFP_CONTAINER_OF(connection->reads.next, struct tcp_pending, node);
    struct ofp_pending *pending;

    if (ofp_list_empty(&connection->reads)) {
        tcp_connection_end_for_violation(connection, "an answer to no read");
        return false;
    }
    pending = tcp_base_pending_of(first);
    if (header->payload != pending->transfer.length ||
        (header->op == TCP_FETCHED) != ofp_operation_is(pending->operation.op, OFP_ATOMIC_KIND)) {
        tcp_connection_end_for_violation(connection, "an answer of another length than was read");
        return false;
    }
    *in = (struct tcp_inbound){.target = TCP_TARGET_READ, .left = header->payload, .space = header->payload};
    in->pending = pending;
    return true;
}

void tcp_rma_read_completed(struct tcp_connection *connection)
{
    struct ofp_pending *pending = connection->in.pending;

    OFP_CHECK(connection->read_count > 0);
    connection->read_count--;
    ofp_list_remove(&tcp_pending_of(pending)->node);
    ofp_transfer_complete(pending, 0, 0);
}

/* ------------------------------------------------------------------------------------------------- requests of peers */

static const char *describe_rma_error(int error)
{
    switch (error) {
    case -OFP_ENOKEY:
        return "it asked for memory under a key that no region has";
    case -ERANGE:
        return "it asked for memory beyond a region's end";
    case -EACCES:
        return "it asked for memory that a region does not grant";
    default:
        return "out of memory for its request";
    }
}

/* Reject a request. The payload of a rejected write is discarded first, then dispatch.c sends the answer. */
static bool reject_rma(struct tcp_connection *connection, const struct tcp_header *header, int error)
{
    if (!connection->extended) {
        tcp_connection_end_for_violation(connection, describe_rma_error(error));
        return false;
    }
    if (header->op == TCP_READ_REQ) {
        tcp_refusal_send(connection, TCP_REFUSED_ANSWER, -error);
        return true;
    }
    tcp_inbound_start(connection, header, NULL);
    connection->in.refused = -error;
    return true;
}

/* Copy a short answer at once, so that the region references are not needed until it is written. */
static bool send_copied_answer(struct tcp_connection *connection, struct tcp_accesses *accesses)
{
    bool good = true;

    for (uint32_t i = 0; i < accesses->count && good; i++)
        good = tcp_queue_append_bytes(connection, accesses->access[i].memory, accesses->access[i].length);
    tcp_accesses_release(accesses);
    return good;
}

bool tcp_rma_read_requested(struct tcp_connection *connection, const struct tcp_header *header)
{
    struct tcp_header answer = {
        .op = TCP_READ_RSP, .payload = header->length, .remote_count = header->remote_count, .flags = header->flags};
    int error;
    struct tcp_accesses *accesses = tcp_accesses_acquire(connection, header, OFP_ACCESS_REMOTE_READ, &error);
    struct ofp_region *region;

    if (!accesses)
        return reject_rma(connection, header, error);
    region = accesses->access[0].region;
    tcp_header_send(connection, &answer);
    if (header->length <= TCP_COPY_MAX) {
        if (!send_copied_answer(connection, accesses))
            tcp_connection_mark_failed(connection, ENOMEM);
    } else if (!tcp_queue_append_accesses(connection, accesses)) {
        tcp_accesses_release(accesses);
        tcp_connection_mark_failed(connection, ENOMEM);
    }
    ofp_remote_event(connection->endpoint->base, connection->peer, region, OFP_COMPLETED_REMOTE_READ, 0,
                     header->length);
    return true;
}

bool tcp_rma_write_requested(struct tcp_connection *connection, const struct tcp_header *header)
{
    struct tcp_inbound *in = &connection->in;
    int error;
    struct tcp_accesses *accesses = tcp_accesses_acquire(connection, header, OFP_ACCESS_REMOTE_WRITE, &error);

    if (!accesses)
        return reject_rma(connection, header, error);
    in->target = TCP_TARGET_WRITE;
    in->flags = header->flags;
    in->left = in->space = in->length = header->payload;
    in->offset = 0;
    in->data = header->data;
    in->accesses = accesses;
    return true;
}

void tcp_rma_write_completed(struct tcp_connection *connection)
{
    struct tcp_inbound *in = &connection->in;
    uint64_t flags = OFP_COMPLETED_REMOTE_WRITE | (in->flags & TCP_FLAG_CQ_DATA ? OFP_COMPLETED_REMOTE_CQ_DATA : 0);
    struct ofp_region *region = in->accesses->access[0].region;

    tcp_accesses_release(in->accesses);
    ofp_remote_event(connection->endpoint->base, connection->peer, region, flags, in->data, in->length);
}
