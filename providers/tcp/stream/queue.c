/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output queue of a connection: everything that its socket has not accepted yet, in order. Headers and short
 * payloads are copied into chunks, so one system call writes many messages. Long payloads stay in the user's memory: of
 * an operation (completed when written), or of regions (released when written).
 */
#include "stream/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "ofipy/iov.h"
#include "stream/access.h"
#include "stream/pending.h"

#define CHUNK_SPACE (TCP_CHUNK - sizeof(struct tcp_item))
/* Unused chunks that a domain stores. */
#define CHUNKS_CACHED 16

/* ----------------------------------------------------------------------------------------------------------- items */

static struct tcp_item *allocate_chunk(struct tcp_domain *domain)
{
    struct ofp_list *node = ofp_list_pop(&domain->chunks);
    struct tcp_item *chunk = node ? OFP_CONTAINER_OF(node, struct tcp_item, node) : malloc(TCP_CHUNK);

    domain->chunk_count -= node != NULL;
    if (chunk) {
        chunk->kind = TCP_ITEM_BYTES;
        chunk->begin = chunk->end = chunk->completed = 0;
    }
    return chunk;
}

static void free_chunk(struct tcp_domain *domain, struct tcp_item *chunk)
{
    if (domain->chunk_count >= CHUNKS_CACHED) {
        free(chunk);
        return;
    }
    domain->chunk_count++;
    ofp_list_prepend(&domain->chunks, &chunk->node);
}

void tcp_chunks_free(struct tcp_domain *domain)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&domain->chunks)))
        free(OFP_CONTAINER_OF(node, struct tcp_item, node));
    domain->chunk_count = 0;
}

static void free_item(struct tcp_connection *connection, struct tcp_item *item)
{
    ofp_list_remove(&item->node);
    if (item->kind == TCP_ITEM_BYTES) {
        OFP_CHECK(connection->out_bytes >= item->end - item->begin);
        connection->out_bytes -= item->end - item->begin;
        free_chunk(connection->endpoint->domain, item);
        return;
    }
    if (item->kind == TCP_ITEM_ACCESSES) {
        connection->out_answers--;
        tcp_accesses_release(item->accesses);
    }
    free(item);
}

void tcp_queue_discard(struct tcp_connection *connection)
{
    while (!ofp_list_empty(&connection->out))
        free_item(connection, OFP_CONTAINER_OF(connection->out.next, struct tcp_item, node));
}

uint64_t tcp_queue_count_completed(const struct tcp_connection *connection)
{
    uint64_t count = 0;

    for (const struct ofp_list *node = connection->out.next; node != &connection->out; node = node->next) {
        const struct tcp_item *item = OFP_CONTAINER_OF(node, const struct tcp_item, node);

        count += item->kind == TCP_ITEM_BYTES ? item->completed : 0;
    }
    return count;
}

bool tcp_queue_is_self_contained(const struct tcp_connection *connection)
{
    for (const struct ofp_list *node = connection->out.next; node != &connection->out; node = node->next)
        if (OFP_CONTAINER_OF(node, const struct tcp_item, node)->kind == TCP_ITEM_TRANSFER)
            return false;
    return true;
}

/* -------------------------------------------------------------------------------------------------------- appending */

/* The last chunk of the queue, or a new one behind it if that is full. NULL: out of memory. */
static struct tcp_item *reserve_chunk_space(struct tcp_connection *connection)
{
    struct tcp_item *last = OFP_CONTAINER_OF(connection->out.previous, struct tcp_item, node);

    if (!ofp_list_empty(&connection->out) && last->kind == TCP_ITEM_BYTES && last->end < CHUNK_SPACE)
        return last;
    last = allocate_chunk(connection->endpoint->domain);
    if (last)
        ofp_list_append(&connection->out, &last->node);
    return last;
}

bool tcp_queue_append_bytes(struct tcp_connection *connection, const void *bytes, size_t length)
{
    struct iovec iov = {(void *)(uintptr_t)bytes, length};

    return tcp_queue_append_iov(connection, &iov, 1, 0);
}

static bool copy_to_chunks(struct tcp_connection *connection, const char *bytes, size_t length)
{
    while (length) {
        struct tcp_item *chunk = reserve_chunk_space(connection);
        size_t part;

        if (!chunk)
            return false;
        part = CHUNK_SPACE - chunk->end < length ? CHUNK_SPACE - chunk->end : length;
        ofp_memory_copy(chunk->bytes + chunk->end, bytes, part);
        chunk->end += (uint32_t)part;
        connection->out_bytes += part;
        bytes += part;
        length -= part;
    }
    return true;
}

bool tcp_queue_append_iov(struct tcp_connection *connection, const struct iovec *iov, uint32_t count, uint64_t offset)
{
    struct ofp_iov_walk walk = {iov, count, offset, OFP_IOV_ALL};
    struct iovec piece;

    while (ofp_iov_next(&walk, &piece))
        if (!copy_to_chunks(connection, piece.iov_base, piece.iov_len))
            return false;
    return true;
}

static struct tcp_item *append_item(struct tcp_connection *connection, enum tcp_item_kind kind, uint64_t offset)
{
    struct tcp_item *item = malloc(sizeof(*item));

    if (!item)
        return NULL;
    item->kind = kind;
    item->offset = offset;
    ofp_list_append(&connection->out, &item->node);
    return item;
}

bool tcp_queue_append_transfer(struct tcp_connection *connection, struct ofp_pending *pending, uint64_t offset)
{
    struct tcp_item *item = append_item(connection, TCP_ITEM_TRANSFER, offset);

    if (item)
        item->pending = pending;
    return item;
}

bool tcp_queue_append_accesses(struct tcp_connection *connection, struct tcp_accesses *accesses)
{
    struct tcp_item *item = append_item(connection, TCP_ITEM_ACCESSES, 0);

    if (!item)
        return false;
    item->accesses = accesses;
    connection->out_answers++;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static uint64_t count_item_bytes(const struct tcp_item *item)
{
    switch (item->kind) {
    case TCP_ITEM_TRANSFER:
        return item->pending->transfer.length - item->offset;
    case TCP_ITEM_ACCESSES:
        return item->accesses->length - item->offset;
    default:
        return item->end - item->begin;
    }
}

/*
 * Pack the next piece of a layout. What the socket does not accept is packed again for the next write, so a buffer of
 * the endpoint is enough.
 */
static int pack_item(struct tcp_connection *connection, const struct tcp_item *item, struct iovec *iov)
{
    const struct ofp_transfer *transfer = &item->pending->transfer;

    iov->iov_base = tcp_packed_buffer_of(connection->endpoint);
    iov->iov_len = ofp_iov_gather(iov->iov_base, transfer->iov, transfer->iov_count, item->offset, TCP_PACKED);
    return 1;
}

static bool is_packed(const struct tcp_item *item)
{
    return item->kind == TCP_ITEM_TRANSFER && item->pending->transfer.iov_count == OFP_LAYOUT;
}

static int fill_item_iov(struct tcp_connection *connection, struct tcp_item *item, struct iovec *iov, uint32_t space)
{
    switch (item->kind) {
    case TCP_ITEM_TRANSFER:
        if (TCP_UNLIKELY(item->pending->transfer.iov_count == OFP_LAYOUT))
            return pack_item(connection, item, iov);
        return (int)ofp_iov_cut(iov, space, item->pending->transfer.iov, item->pending->transfer.iov_count,
                                item->offset, OFP_IOV_ALL);
    case TCP_ITEM_ACCESSES:
        /* Fails if the region was closed after the request. */
        return tcp_accesses_fill_iov(item->accesses, item->offset, iov, space);
    default:
        iov[0] = (struct iovec){item->bytes + item->begin, item->end - item->begin};
        return 1;
    }
}

static int fill_queue_iov(struct tcp_connection *connection, struct iovec iov[TCP_IOV_MAX])
{
    int count = 0;

    for (struct ofp_list *node = connection->out.next; node != &connection->out && count < TCP_IOV_MAX;
         node = node->next) {
        struct tcp_item *item = OFP_CONTAINER_OF(node, struct tcp_item, node);
        int added = fill_item_iov(connection, item, iov + count, TCP_IOV_MAX - (uint32_t)count);

        if (added < 0)
            return count ? count : -ECANCELED;
        count += added;
        /* The next piece may be the rest of this layout, or need the same buffer. */
        if (TCP_UNLIKELY(is_packed(item)))
            break;
    }
    return count;
}

static void advance_queue(struct tcp_connection *connection, uint64_t length)
{
    while (!ofp_list_empty(&connection->out)) {
        struct tcp_item *item = OFP_CONTAINER_OF(connection->out.next, struct tcp_item, node);
        uint64_t part = count_item_bytes(item);

        if (part > length) {
            if (item->kind == TCP_ITEM_BYTES) {
                item->begin += (uint32_t)length;
                connection->out_bytes -= length;
            } else {
                item->offset += length;
            }
            return;
        }
        length -= part;
        if (item->kind == TCP_ITEM_TRANSFER)
            tcp_pending_sent(item->pending);
        free_item(connection, item);
    }
    OFP_CHECK(length == 0);
}

/* Copied messages complete before the write: their senders' memory is reusable whatever the kernel accepts. */
static void complete_batched(struct tcp_connection *connection)
{
    struct ofp_list *node;

    connection->batched_bytes = 0;
    while ((node = ofp_list_pop(&connection->batched)))
        tcp_pending_sent(tcp_base_pending_of(OFP_CONTAINER_OF(node, struct tcp_pending, node)));
}

/* Write the bytes that the stream stores. False: some are left, or the stream has failed. */
static bool flush_stream(struct tcp_connection *connection)
{
    int error = connection->stream.ops->flush(&connection->stream);

    if (error == -EAGAIN)
        connection->blocked = true;
    else if (error && !connection->shut)
        tcp_connection_end_output(connection, -error);
    return !error;
}

void tcp_queue_flush(struct tcp_connection *connection)
{
    /* The queue may lack a part of a message, so nothing behind it may be written either. */
    if (TCP_UNLIKELY(connection->failure))
        return;
    if (!connection->shut)
        complete_batched(connection);
    if (TCP_UNLIKELY(connection->stream.unsent) && !flush_stream(connection))
        return;
    while (!ofp_list_empty(&connection->out) && !connection->shut && connection->stream.fd >= 0) {
        struct iovec iov[TCP_IOV_MAX];
        int count = fill_queue_iov(connection, iov);
        ssize_t result;

        if (count < 0) {
            tcp_connection_mark_failed(connection, -count);
            return;
        }
        /* All remaining items are empty payloads. */
        result = count ? connection->stream.ops->writev(&connection->stream, iov, count) : 0;
        if (result == -EAGAIN) {
            connection->blocked = true;
            return;
        }
        if (result < 0) {
            tcp_connection_end_output(connection, (int)-result);
            return;
        }
        connection->blocked |= connection->stream.unsent;
        advance_queue(connection, (uint64_t)result);
    }
}

void tcp_endpoint_flush(struct ofp_endpoint *base)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    struct ofp_list *node;

    while ((node = ofp_list_pop(&endpoint->dirty))) {
        struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_connection, dirty);

        if (!connection->blocked)
            tcp_queue_flush(connection);
    }
}
