/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue of a queue pair, as connected endpoints, paths and datagram endpoints share it.
 *
 * Work requests are numbered from 0. Those from `tail` up to `head` are at the device or in the chain. The owner of the queue stores
 * what belongs to a work request in arrays of its own, at verbs_send_queue_place. A completion of one number is one of all numbers
 * before it, so only some work requests ask for a completion. The domain's lock is held in every function.
 */
#ifndef VERBS_SEND_QUEUE_H
#define VERBS_SEND_QUEUE_H

#include "library/library.h"
#include "ofipy/check.h"

/* Local segments of one work request; a receive has one more, for the bytes that do not fit. */
#define VERBS_SEGMENTS 8
/* The largest inline size that a queue pair is created with, in bytes. */
#define VERBS_INLINE_MAX 256
/* Work requests that are posted to the device at once. */
#define VERBS_CHAIN 32

struct verbs_send_queue {
    uint64_t head;      /* the number of the next work request */
    uint64_t tail;      /* the number of the oldest one that has not ended */
    uint64_t signalled; /* the number behind the last one that asked for a completion */
    uint32_t depth;     /* work requests at a time */
    uint32_t mask;      /* a power of two less one, at least depth - 1: a post needs no division */
};

/* Work requests of one queue pair that are posted together. Inline data lie in `bytes` until then. */
struct verbs_chain {
    struct ibv_send_wr requests[VERBS_CHAIN];
    struct ibv_sge segments[VERBS_CHAIN][VERBS_SEGMENTS];
    uint8_t bytes[VERBS_CHAIN][VERBS_INLINE_MAX];
    uint32_t count;
};

/* ------------------------------------------------------------------------------------------------------------ queue */

/* The arrays of the owner have `mask` + 1 entries. */
static inline void verbs_send_queue_init(struct verbs_send_queue *queue, uint32_t depth)
{
    *queue = (struct verbs_send_queue){.depth = depth};
    while (queue->mask + 1 < depth)
        queue->mask = 2 * queue->mask + 1;
}

static inline uint32_t verbs_send_queue_count(const struct verbs_send_queue *queue)
{
    return (uint32_t)(queue->head - queue->tail);
}

static inline uint32_t verbs_send_queue_count_space(const struct verbs_send_queue *queue)
{
    return queue->depth - verbs_send_queue_count(queue);
}

static inline bool verbs_send_queue_is_empty(const struct verbs_send_queue *queue)
{
    return queue->head == queue->tail;
}

/* Whether the work request of this number has been appended and has not ended. */
static inline bool verbs_send_queue_has_number(const struct verbs_send_queue *queue, uint64_t number)
{
    return number - queue->tail < queue->head - queue->tail;
}

/* The index of a work request in the owner's arrays. */
static inline uint32_t verbs_place_of_number(const struct verbs_send_queue *queue, uint64_t number)
{
    return (uint32_t)number & queue->mask;
}

/* Appends a work request; returns its place. */
static inline uint32_t verbs_send_queue_append(struct verbs_send_queue *queue)
{
    OFP_CHECK(queue->head - queue->tail < queue->depth);
    return verbs_place_of_number(queue, queue->head++);
}

/* Removes the oldest work request, which has ended; returns its place. */
static inline uint32_t verbs_send_queue_pop(struct verbs_send_queue *queue)
{
    OFP_CHECK(queue->tail < queue->head);
    return verbs_place_of_number(queue, queue->tail++);
}

/* Whether the last work request has to ask for a completion, since the queue would fill up without one. */
static inline bool verbs_send_queue_needs_signal(const struct verbs_send_queue *queue)
{
    return queue->head - queue->signalled >= queue->depth / 4;
}

/* Has the last work request ask for a completion. */
static inline void verbs_send_queue_set_signal(struct verbs_send_queue *queue, struct ibv_send_wr *last)
{
    OFP_CHECK(queue->signalled < queue->head && queue->tail < queue->head);
    last->send_flags |= IBV_SEND_SIGNALED;
    queue->signalled = queue->head;
}

/* ------------------------------------------------------------------------------------------------------------ chain */

static inline bool verbs_chain_is_full(const struct verbs_chain *chain) { return chain->count == VERBS_CHAIN; }

/*
 * The work request behind the last one of the chain, which has space. Operation, remote memory and immediate data are the caller's
 * to write: clearing a whole work request is a good part of what a post costs.
 */
static inline struct ibv_send_wr *verbs_chain_reserve_request(struct verbs_chain *chain)
{
    struct ibv_send_wr *request = &chain->requests[chain->count];

    OFP_CHECK(chain->count < VERBS_CHAIN);
    request->next = NULL;
    request->sg_list = chain->segments[chain->count];
    request->num_sge = 0;
    request->send_flags = 0;
    return request;
}

/* Makes the reserved work request part of the chain. */
static inline void verbs_chain_append(struct verbs_chain *chain, struct ibv_send_wr *request)
{
    if (chain->count)
        chain->requests[chain->count - 1].next = request;
    chain->count++;
}

/* Posts the chain, and empties it. Space was counted before, so an error (an errno) means that the queue pair is broken. */
static inline int verbs_chain_post(struct verbs_chain *chain, struct ibv_qp *qp)
{
    struct ibv_send_wr *bad;

    OFP_CHECK(chain->count > 0 && chain->count <= VERBS_CHAIN);
    chain->count = 0;
    return ibv_post_send(qp, chain->requests, &bad);
}

/* One local segment; none for no bytes, since some devices take a length of 0 for 2 GiB. */
static inline void verbs_request_set_segment(struct ibv_send_wr *request, const void *memory, uint64_t length,
                                             uint32_t key)
{
    *request->sg_list = (struct ibv_sge){.addr = (uintptr_t)memory, .length = (uint32_t)length, .lkey = key};
    request->num_sge = length ? 1 : 0;
}

#endif
