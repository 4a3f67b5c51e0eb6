/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_QUEUE_H
#define TCP_QUEUE_H

#include "objects.h"

enum tcp_item_kind { TCP_ITEM_BYTES, TCP_ITEM_TRANSFER, TCP_ITEM_ACCESSES };

struct tcp_item {
    struct ofp_list node;
    enum tcp_item_kind kind;
    uint32_t begin, end; /* BYTES: range of the bytes that are not written yet */
    /* BYTES: operations whose last byte is in this chunk and that completed when they were copied */
    uint32_t completed;
    uint64_t offset; /* TRANSFER, ACCESSES: bytes that are written */
    union {
        struct ofp_pending *pending;   /* TRANSFER: completed when all bytes are written */
        struct tcp_accesses *accesses; /* ACCESSES: owned */
    };
    char bytes[];
};

/* Append a copy. False: out of memory; the queue may end within a message, so the connection must be marked failed. */
bool tcp_queue_append_bytes(struct tcp_connection *connection, const void *bytes, size_t length);
bool tcp_queue_append_iov(struct tcp_connection *connection, const struct iovec *iov, uint32_t count, uint64_t offset);
/* Append memory without a copy: an operation's from `offset` on, or that of regions. False: out of memory. */
bool tcp_queue_append_transfer(struct tcp_connection *connection, struct ofp_pending *pending, uint64_t offset);
bool tcp_queue_append_accesses(struct tcp_connection *connection, struct tcp_accesses *accesses);
/* Write as much as the socket accepts. */
void tcp_queue_flush(struct tcp_connection *connection);
void tcp_queue_discard(struct tcp_connection *connection);
/* Number of completed operations whose bytes are still queued. */
uint64_t tcp_queue_count_completed(const struct tcp_connection *connection);
/* Count an operation that is complete although its last bytes, at the end of the queue, are not written. */
static inline void tcp_queue_mark_completed(struct tcp_connection *connection)
{
    OFP_CONTAINER_OF(connection->out.previous, struct tcp_item, node)->completed++;
}
/* Whether the queue needs no memory of operations, so that it can be written after they have ended. */
bool tcp_queue_is_self_contained(const struct tcp_connection *connection);
/* Whether the peer has too many unread answers. Then its requests are not read. */
static inline bool tcp_queue_is_overfull(const struct tcp_connection *connection)
{
    return TCP_UNLIKELY(connection->out_bytes > TCP_ANSWERS_MAX || connection->out_answers > TCP_ANSWER_ITEMS_MAX);
}
/* After a hangup the peer cannot request more, so the rest is read although the queue is overfull. */
static inline bool tcp_connection_can_read(const struct tcp_connection *connection)
{
    return !connection->stalled && (!tcp_queue_is_overfull(connection) || connection->hangup);
}
void tcp_endpoint_flush(struct ofp_endpoint *base);
void tcp_chunks_free(struct tcp_domain *domain);

#endif
