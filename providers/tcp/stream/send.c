/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending: at once and without a copy where the socket takes it, else into the output queue. */
#include "stream/send.h"

#include <errno.h>

#include "ofipy/iov.h"
#include "stream/pending.h"
#include "stream/queue.h"

/* Payload up to this is put behind its header before it is written. */
#define SHORT_PAYLOAD 512
/* Messages that wait for others leave when they are so many bytes, or the first has waited so long (ns). */
#define HELD_BYTES (UINT64_C(1) << 20)
#define HELD_NS 20000

void tcp_send_header(struct tcp_connection *connection, const struct tcp_header *header)
{
    uint8_t bytes[TCP_HEADER_MAX];
    size_t size = tcp_header_encode(header, connection->next_id++, connection->swapped, bytes);

    if (!tcp_queue_bytes(connection, bytes, size))
        tcp_connection_doom(connection, ENOMEM);
    tcp_queue_later(connection);
}

void tcp_send_ack(struct tcp_connection *connection, uint16_t flags)
{
    struct tcp_header ack = {.op = TCP_MSG, .op_data = TCP_OP_DATA_ACK};

    if (flags & TCP_FLAGS_ACK)
        tcp_send_header(connection, &ack);
}

void tcp_send_refusal(struct tcp_connection *connection, enum tcp_refused what, int error)
{
    struct tcp_header refused = {.op = TCP_REFUSED, .op_data = (uint8_t)what, .words = {(uint64_t)error}};

    tcp_send_header(connection, &refused);
}

void tcp_send_goodbye(struct tcp_connection *connection, bool ended)
{
    struct tcp_header goodbye = {.op = TCP_GOODBYE, .op_data = ended};

    if (connection->extended && !connection->shut)
        tcp_send_header(connection, &goodbye);
}

/*
 * Whether a message waits for others: one has left just now and since the last look at the network, and whoever posted it will
 * look, since it is told of the end. While somebody sleeps nobody looks. Who posts one message now and then may find its end in
 * the queue without a look, so the time counts too.
 */
static bool waits_for_others(const struct tcp_connection *connection, const struct ofp_transfer *transfer)
{
    const struct tcp_endpoint *endpoint = connection->endpoint;

    return connection->left_at == endpoint->looks && !(transfer->op->flags & (OFP_MORE | OFP_INJECT)) &&
           !endpoint->armed && !connection->blocked &&
           (connection->held_bytes || tcp_core->now() - connection->left_ns < HELD_NS);
}

static __attribute__((noinline)) void hold(struct tcp_connection *connection, uint64_t length)
{
    uint64_t now = tcp_core->now();

    if (!connection->held_bytes)
        connection->held_since = now;
    connection->held_bytes += TCP_HEADER_BASE + length;
    if (connection->held_bytes > HELD_BYTES || now - connection->held_since > HELD_NS) {
        tcp_queue_flush(connection);
        connection->left_ns = tcp_core->now();
        return;
    }
    tcp_queue_later(connection);
    ofp_look_soon(connection->endpoint->base);
}

/* Queue what is left of header and payload. `pending` is retained where it is not copied, or its end is to be waited for. */
static __attribute__((noinline)) int queue_rest(struct tcp_connection *connection, const struct iovec *header,
                                                const struct ofp_transfer *transfer, struct ofp_pending *pending,
                                                uint64_t written, bool held)
{
    uint64_t head_written = written < header->iov_len ? written : header->iov_len;
    uint64_t offset = written - head_written, rest = transfer->length - offset;
    bool copy = rest <= TCP_COPY_MAX && connection->out_bytes < TCP_COPIES_MAX;
    bool good;

    if ((!copy || held) && !pending) {
        pending = ofp_transfer_retain(connection->endpoint->base, connection->peer, transfer);
        if (!pending && !written)
            return -EAGAIN;
        /* A message cannot be left half sent. */
        if (!pending)
            goto doomed;
    }
    good = tcp_queue_iov(connection, header, 1, head_written);
    if (good && copy)
        good = tcp_queue_iov(connection, transfer->iov, transfer->iov_count, offset);
    else if (good)
        good = tcp_queue_transfer(connection, pending, offset);
    if (!good)
        goto doomed;
    if (copy && !(pending && tcp_pending_of(pending)->unacked))
        tcp_queue_note_completed(connection);
    if (copy && held && !tcp_pending_of(pending)->unacked)
        ofp_list_append(&connection->held, &tcp_pending_of(pending)->node);
    else if (copy && pending)
        tcp_pending_sent(pending);
    return pending ? OFP_POST_PENDING : OFP_POST_DONE;

doomed:
    tcp_connection_doom(connection, ENOMEM);
    return pending ? OFP_POST_PENDING : -ENOMEM;
}

/* In one call with the header, behind which there is room for SHORT_PAYLOAD. Returns bytes written; an error shows again when it is read. */
static uint64_t write_now(struct tcp_connection *connection, const struct iovec *header,
                          const struct ofp_transfer *transfer)
{
    struct iovec iov[OFP_SEGMENT_LIMIT + 1];
    uint32_t count = 1;
    ssize_t result;

    iov[0] = *header;
    if (transfer->iov_count == 1 && transfer->length <= SHORT_PAYLOAD) {
        /* Cheaper than to explain two pieces to the kernel. */
        ofp_memory_copy((char *)header->iov_base + header->iov_len, transfer->iov[0].iov_base, transfer->length);
        iov[0].iov_len += transfer->length;
    } else {
        count += ofp_iov_cut(iov + 1, OFP_SEGMENT_LIMIT, transfer->iov, transfer->iov_count, 0, OFP_IOV_ALL);
    }
    result = connection->stream.ops->writev(&connection->stream, iov, (int)count);
    if (TCP_LIKELY(result > 0))
        return (uint64_t)result;
    connection->blocked = true;
    if (result != -EAGAIN) {
        connection->shut = connection->hangup = true;
        tcp_connection_ready(connection);
    }
    return 0;
}

int tcp_send_payload(struct tcp_connection *connection, const struct tcp_header *header,
                     const struct ofp_transfer *transfer, struct ofp_pending *pending, bool unacked)
{
    uint8_t bytes[TCP_HEADER_MAX + SHORT_PAYLOAD];
    struct iovec head = {bytes, 0};
    bool more = transfer->op->flags & OFP_MORE, held = waits_for_others(connection, transfer);
    uint64_t written = 0, length = transfer->length;
    int result;

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
    if (!more && TCP_LIKELY(!held) && ofp_list_empty(&connection->out) && !connection->blocked) {
        connection->left_at = connection->endpoint->looks;
        written = write_now(connection, &head, transfer);
        connection->left_ns = tcp_core->now();
        if (TCP_LIKELY(written == head.iov_len + transfer->length)) {
            connection->next_id++;
            if (TCP_LIKELY(!pending))
                return OFP_POST_DONE;
            tcp_pending_sent(pending);
            return OFP_POST_PENDING;
        }
    }
    result = queue_rest(connection, &head, transfer, pending, written, held);
    connection->next_id += result >= 0;
    if (result < 0 || connection->blocked)
        return result;
    if (held)
        hold(connection, length);
    else if (more && connection->out_bytes < TCP_COPIES_MAX)
        tcp_queue_later(connection);
    else
        tcp_queue_flush(connection);
    return result;
}

/* -------------------------------------------------------------------------------------------------------- messages */
