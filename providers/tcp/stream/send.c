/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending. A message is written at once from the user's memory if the queue is empty and the socket accepts it.
 * Otherwise it is appended to the queue, and copied if it is short. Short messages that follow each other closely are
 * batched: they wait in the queue for the next flush, and one system call writes them.
 */
#include "stream/send.h"

#include <errno.h>

#include "ofipy/iov.h"
#include "stream/pending.h"
#include "stream/queue.h"

/* A payload up to this size is copied behind its header, so that one piece is written. */
#define SHORT_PAYLOAD 512
/* A batch is written when it has this many bytes, or when its first message has waited this long (ns). */
#define BATCH_BYTES (UINT64_C(1) << 20)
#define BATCH_NS 20000

void tcp_header_send(struct tcp_connection *connection, const struct tcp_header *header)
{
    uint8_t bytes[TCP_HEADER_MAX];
    size_t size = tcp_header_encode(header, connection->next_id++, connection->swapped, bytes);

    if (!tcp_queue_append_bytes(connection, bytes, size))
        tcp_connection_mark_failed(connection, ENOMEM);
    tcp_connection_schedule_flush(connection);
}

void tcp_ack_send(struct tcp_connection *connection, uint16_t flags)
{
    struct tcp_header ack = {.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK};

    if (flags & TCP_FLAGS_ACK)
        tcp_header_send(connection, &ack);
}

void tcp_refusal_send(struct tcp_connection *connection, enum tcp_refused what, int error)
{
    struct tcp_header refused = {.op = TCP_REFUSED, .op_data = (uint8_t)what, .words = {(uint64_t)error}};

    tcp_header_send(connection, &refused);
}

void tcp_goodbye_send(struct tcp_connection *connection, bool ended)
{
    struct tcp_header goodbye = {.op = TCP_GOODBYE, .op_data = ended};

    if (connection->extended && !connection->shut)
        tcp_header_send(connection, &goodbye);
}

/*
 * Whether to batch a message: another message was written after the last progress call, and not long ago. Batching
 * relies on the sender to call progress, so it is off while a thread sleeps (`armed`) and for injected messages, whose
 * sender waits for nothing. A sender that posts rarely may find its completion without progress, so the time since the
 * last write counts too.
 */
static bool needs_batching(const struct tcp_connection *connection, const struct ofp_transfer *transfer)
{
    const struct tcp_endpoint *endpoint = connection->endpoint;

    return connection->sent_in_round == endpoint->rounds && !(transfer->op->flags & (OFP_MORE | OFP_INJECT)) &&
           !endpoint->armed && !connection->blocked &&
           (connection->batched_bytes || tcp_core->now() - connection->sent_at < BATCH_NS);
}

static __attribute__((noinline)) void defer_message(struct tcp_connection *connection, uint64_t length)
{
    uint64_t now = tcp_core->now();

    if (!connection->batched_bytes)
        connection->batched_since = now;
    connection->batched_bytes += TCP_HEADER_BASE + length;
    if (connection->batched_bytes > BATCH_BYTES || now - connection->batched_since > BATCH_NS) {
        tcp_queue_flush(connection);
        connection->sent_at = tcp_core->now();
        return;
    }
    tcp_connection_schedule_flush(connection);
    ofp_look_soon(connection->endpoint->base);
}

/*
 * Append the part of header and payload that is not written. The operation is retained if its payload is not copied, or
 * if it is batched.
 */
static __attribute__((noinline)) int append_unwritten_bytes(struct tcp_connection *connection,
                                                            const struct iovec *header,
                                                            const struct ofp_transfer *transfer,
                                                            struct ofp_pending *pending, uint64_t written, bool batched)
{
    uint64_t head_written = written < header->iov_len ? written : header->iov_len;
    uint64_t offset = written - head_written, rest = transfer->length - offset;
    bool copy = rest <= TCP_COPY_MAX && connection->out_bytes < TCP_COPIES_MAX;
    bool good;

    if ((!copy || batched) && !pending) {
        pending = ofp_transfer_retain(connection->endpoint->base, connection->peer, transfer);
        if (!pending && !written)
            return -EAGAIN;
        /* Half of the message is written, so the stream cannot continue without the rest. */
        if (!pending)
            goto failed;
    }
    good = tcp_queue_append_iov(connection, header, 1, head_written);
    if (good && copy)
        good = tcp_queue_append_iov(connection, transfer->iov, transfer->iov_count, offset);
    else if (good)
        good = tcp_queue_append_transfer(connection, pending, offset);
    if (!good)
        goto failed;
    if (copy && !(pending && tcp_pending_of(pending)->unacked))
        tcp_queue_mark_completed(connection);
    if (copy && batched && !tcp_pending_of(pending)->unacked)
        ofp_list_append(&connection->batched, &tcp_pending_of(pending)->node);
    else if (copy && pending)
        tcp_pending_sent(pending);
    return pending ? OFP_POST_PENDING : OFP_POST_DONE;

failed:
    tcp_connection_mark_failed(connection, ENOMEM);
    return pending ? OFP_POST_PENDING : -ENOMEM;
}

/*
 * Write header and payload in one call. Behind the header there are SHORT_PAYLOAD bytes of space. Returns the number of
 * bytes written; a read reports any error again.
 */
static uint64_t write_message(struct tcp_connection *connection, const struct iovec *header,
                              const struct ofp_transfer *transfer)
{
    struct iovec iov[OFP_SEGMENT_LIMIT + 1];
    uint32_t count = 1;
    ssize_t result;

    iov[0] = *header;
    if (transfer->iov_count == 1 && transfer->length <= SHORT_PAYLOAD) {
        /* For a short payload a copy costs less than a second piece. */
        ofp_memory_copy((char *)header->iov_base + header->iov_len, transfer->iov[0].iov_base, transfer->length);
        iov[0].iov_len += transfer->length;
    } else if (TCP_UNLIKELY(transfer->iov_count == OFP_LAYOUT)) {
        iov[1].iov_base = tcp_packed_buffer_of(connection->endpoint);
        iov[1].iov_len = ofp_iov_gather(iov[1].iov_base, transfer->iov, transfer->iov_count, 0, TCP_PACKED);
        count++;
    } else {
        count += ofp_iov_cut(iov + 1, OFP_SEGMENT_LIMIT, transfer->iov, transfer->iov_count, 0, OFP_IOV_ALL);
    }
    result = connection->stream.ops->writev(&connection->stream, iov, (int)count);
    if (TCP_LIKELY(result > 0)) {
        connection->blocked = connection->stream.unsent;
        return (uint64_t)result;
    }
    connection->blocked = true;
    if (result != -EAGAIN)
        tcp_connection_end_output(connection, (int)-result);
    return 0;
}

int tcp_payload_send(struct tcp_connection *connection, const struct tcp_header *header,
                     const struct ofp_transfer *transfer, struct ofp_pending *pending, bool unacked)
{
    uint8_t bytes[TCP_HEADER_MAX + SHORT_PAYLOAD];
    struct iovec head = {bytes, 0};
    bool more = transfer->op->flags & OFP_MORE, batched = needs_batching(connection, transfer);
    uint64_t written = 0, length = transfer->length;
    int result;

    OFP_CHECK(connection->state == TCP_UP);
    OFP_CHECK(!pending || !tcp_pending_of(pending)->sent);
    if (unacked && !pending) {
        pending = ofp_transfer_retain(connection->endpoint->base, connection->peer, transfer);
        if (!pending)
            return -EAGAIN;
    }
    if (pending) {
        transfer = &pending->transfer;
        tcp_pending_of(pending)->unacked = unacked;
        if (unacked)
            ofp_list_append(&connection->acks, &tcp_pending_of(pending)->node);
    }
    head.iov_len = tcp_header_encode(header, connection->next_id, connection->swapped, bytes);
    if (!more && TCP_LIKELY(!batched) && ofp_list_empty(&connection->out) && !connection->blocked) {
        connection->sent_in_round = connection->endpoint->rounds;
        written = write_message(connection, &head, transfer);
        connection->sent_at = tcp_core->now();
        if (TCP_LIKELY(written == head.iov_len + transfer->length)) {
            connection->next_id++;
            if (TCP_LIKELY(!pending))
                return OFP_POST_DONE;
            tcp_pending_sent(pending);
            return OFP_POST_PENDING;
        }
    }
    result = append_unwritten_bytes(connection, &head, transfer, pending, written, batched);
    connection->next_id += result >= 0;
    if (result < 0 || connection->blocked)
        return result;
    if (batched)
        defer_message(connection, length);
    else if (more && connection->out_bytes < TCP_COPIES_MAX)
        tcp_connection_schedule_flush(connection);
    else
        tcp_queue_flush(connection);
    return result;
}

/* -------------------------------------------------------------------------------------------------------- messages */
