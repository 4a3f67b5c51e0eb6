/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics between ofipy peers; libfabric's protocol has none. The target's core executes them. A fetching atomic is
 * answered in the order of the reads, another one with an acknowledgement.
 */
#include "message/atomic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/access.h"
#include "connection/connection.h"
#include "stream/queue.h"
#include "stream/send.h"

/* ------------------------------------------------------------------------------------------------- our own requests */

int tcp_atomic_post(struct tcp_connection *connection, const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    bool fetches = ofp_operation_is(op->op, OFP_READS);
    struct tcp_header header = {.op = TCP_ATOMIC, .op_data = (uint8_t)op->op, .data = op->data};
    struct ofp_pending *pending;
    bool good = true;

    /* Operands are short, so they are always copied. */
    if (connection->read_count >= TCP_READS_MAX || connection->out_bytes > TCP_COPIES_MAX)
        return -EAGAIN;
    pending = ofp_transfer_retain(connection->endpoint->base, connection->peer, transfer);
    if (!pending)
        return -EAGAIN;
    transfer = &pending->transfer;
    header.remote_count = (uint8_t)transfer->remote_count;
    memcpy(header.remote, transfer->remote, transfer->remote_count * sizeof(header.remote[0]));
    header.flags = (uint16_t)(TCP_ATOMIC_FLAGS(op->atomic_op, op->datatype) | (fetches ? 0 : TCP_FLAG_DELIVERY) |
                              (op->flags & OFP_REMOTE_CQ_DATA ? TCP_FLAG_CQ_DATA : 0));
    header.length = transfer->length;
    header.payload = tcp_atomic_compute_payload(&header);
    tcp_header_send(connection, &header);
    good = tcp_queue_append_iov(connection, transfer->iov, transfer->iov_count, 0);
    if (good && ofp_operation_is(op->op, OFP_COMPARES))
        good = tcp_queue_append_bytes(connection, transfer->compare, transfer->length);
    if (!good)
        tcp_connection_mark_failed(connection, ENOMEM);
    tcp_pending_of(pending)->sent = tcp_pending_of(pending)->unacked = true;
    ofp_list_append(fetches ? &connection->reads : &connection->acks, &tcp_pending_of(pending)->node);
    connection->read_count += fetches;
    if (!(pending->operation.flags & OFP_MORE) && !connection->blocked)
        tcp_queue_flush(connection);
    return OFP_POST_PENDING;
}

/* ------------------------------------------------------------------------------------------------- requests of peers */

static int execute_operands(const struct tcp_accesses *accesses, struct tcp_operands *operands)
{
    const struct tcp_header *header = &operands->header;
    uint8_t *operand = operands->bytes;
    int error = 0;

    for (uint32_t i = 0; i < accesses->count && !error; i++) {
        const struct ofp_remote_access *access = &accesses->access[i];

        if (access->length)
            error = tcp_core->atomic_execute(access, header->op_data, TCP_ATOMIC_OP(header->flags),
                                             TCP_ATOMIC_DATATYPE(header->flags), operand, operand + header->length,
                                             operand);
        operand += access->length;
    }
    return error;
}

static void report_atomic(struct tcp_connection *connection, const struct tcp_header *header, struct ofp_region *region)
{
    uint64_t flags = ofp_operation_row(header->op_data)->event |
                     (header->flags & TCP_FLAG_CQ_DATA ? OFP_COMPLETED_REMOTE_CQ_DATA : 0);

    ofp_remote_event(connection->endpoint->base, connection->peer, region, flags, header->data, header->length);
}

static void send_atomic_answer(struct tcp_connection *connection, const struct tcp_operands *operands, int error)
{
    struct tcp_header fetched = {.op = TCP_FETCHED, .payload = operands->header.length};
    bool fetches = ofp_operation_is(operands->header.op_data, OFP_READS);

    if (error) {
        tcp_refusal_send(connection, fetches ? TCP_REFUSED_ANSWER : TCP_REFUSED_ACK, -error);
    } else if (!fetches) {
        tcp_ack_send(connection, TCP_FLAG_DELIVERY);
    } else {
        tcp_header_send(connection, &fetched);
        if (!tcp_queue_append_bytes(connection, operands->bytes, operands->header.length))
            tcp_connection_mark_failed(connection, ENOMEM);
    }
}

void tcp_atomic_execute(struct tcp_connection *connection, struct tcp_operands *operands)
{
    const struct tcp_header *header = &operands->header;
    uint32_t rights = ofp_operation_remote_access(header->op_data, TCP_ATOMIC_OP(header->flags));
    struct tcp_accesses *accesses;
    struct ofp_region *region = NULL;
    int error;

    accesses = tcp_accesses_acquire(connection, header, rights, &error);
    if (accesses) {
        region = accesses->access[0].region;
        error = execute_operands(accesses, operands);
        tcp_accesses_release(accesses);
    }
    if (!error)
        report_atomic(connection, header, region);
    send_atomic_answer(connection, operands, error);
    free(operands);
}

ssize_t tcp_atomic_requested(struct tcp_connection *connection, const struct tcp_header *header, const uint8_t *payload,
                             size_t available)
{
    struct tcp_inbound *in = &connection->in;
    struct tcp_operands *operands;

    if (!ofp_operation_is(header->op_data, OFP_ATOMIC_KIND) || header->length > TCP_ATOMIC_MAX) {
        tcp_connection_end_for_violation(connection, "an atomic that cannot be");
        return -ECONNABORTED;
    }
    /* Allocate the size of a comparing atomic, since the executor always gets all operands. */
    operands = calloc(1, sizeof(*operands) + 2 * header->length);
    if (!operands)
        return -EAGAIN;
    operands->header = *header;
    if (header->payload <= available) {
        if (header->payload)
            memcpy(operands->bytes, payload, header->payload);
        tcp_atomic_execute(connection, operands);
        return (ssize_t)header->payload;
    }
    in->target = TCP_TARGET_ATOMIC;
    in->left = in->space = header->payload;
    in->offset = 0;
    in->operands = operands;
    return 0;
}
