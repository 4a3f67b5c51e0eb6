/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_QUEUE_H
#define TCP_QUEUE_H

#include "objects.h"

enum tcp_item_kind { TCP_ITEM_BYTES, TCP_ITEM_TRANSFER, TCP_ITEM_ACCESSES };

struct tcp_item {
    struct ofp_list node;
    enum tcp_item_kind kind;
    uint32_t begin, end; /* bytes: what is left of them */
    uint32_t completed;  /* bytes: operations that end in them and were completed when they were copied */
    uint64_t offset;     /* the others: bytes that are written */
    union {
        struct ofp_pending *pending;   /* finished when they are */
        struct tcp_accesses *accesses; /* owned */
    };
    char bytes[];
};

/* Append copies. False: out of memory, and the connection is of no use any more. */
bool tcp_queue_append_bytes(struct tcp_connection *connection, const void *bytes, size_t length);
bool tcp_queue_append_iov(struct tcp_connection *connection, const struct iovec *iov, uint32_t count, uint64_t offset);
/* Append memory: of an operation, from `offset` on, or of regions here. */
bool tcp_queue_append_transfer(struct tcp_connection *connection, struct ofp_pending *pending, uint64_t offset);
bool tcp_queue_append_accesses(struct tcp_connection *connection, struct tcp_accesses *accesses);
/* Write as much as the socket takes. */
void tcp_queue_flush(struct tcp_connection *connection);
void tcp_queue_discard(struct tcp_connection *connection);
/* Operations that were completed and whose bytes are still queued. */
uint64_t tcp_queue_count_completed(const struct tcp_connection *connection);
/* Note that the bytes at the end of the queue are all of an operation that is completed now. */
static inline void tcp_queue_mark_completed(struct tcp_connection *connection)
{
    OFP_CONTAINER_OF(connection->out.previous, struct tcp_item, node)->completed++;
}
/* Whether what is queued can leave after its operations have ended. */
bool tcp_queue_is_self_contained(const struct tcp_connection *connection);
/* The peer reads so little of what it asks for that it may not ask for more. */
static inline bool tcp_queue_is_overfull(const struct tcp_connection *connection)
{
    return TCP_UNLIKELY(connection->out_bytes > TCP_ANSWERS_MAX || connection->out_answers > TCP_ANSWER_ITEMS_MAX);
}
/* Who hangs up asks for no more, but what it said before counts. */
static inline bool tcp_connection_can_read(const struct tcp_connection *connection)
{
    return !connection->stalled && (!tcp_queue_is_overfull(connection) || connection->hangup);
}
void tcp_endpoint_flush(struct ofp_endpoint *base);
void tcp_chunks_free(struct tcp_domain *domain);

#endif
