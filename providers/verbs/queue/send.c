/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/send.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"
#include "memory/slot.h"
#include "queue/atomic.h"

/* What needs an answer of the other side's device. */
#define LEVELS (OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)

/* ------------------------------------------------------------------------------------------------------------ works */

static struct verbs_work *work_take(struct verbs_pair *pair)
{
    struct verbs_work *work = pair->free_works;

    if (!work)
        return calloc(1, sizeof(*work));
    pair->free_works = work->next;
    memset(work, 0, offsetof(struct verbs_work, registered));
    return work;
}

static void work_give(struct verbs_endpoint *endpoint, struct verbs_work *work)
{
    struct verbs_pair *pair = &endpoint->pair;

    if (work->slot)
        verbs_slot_give(endpoint->domain, work->slot);
    verbs_memory_release(endpoint->domain, work->registered, &work->registered_count);
    work->next = pair->free_works;
    pair->free_works = work;
}

/* What came back. */
static void hand_over(const struct verbs_slot *slot, const struct ofp_transfer *transfer)
{
    if (ofp_operation_is(transfer->op->op, OFP_ATOMIC_KIND))
        memcpy(transfer->result, slot->memory, VERBS_ATOMIC_SIZE);
    else
        verbs_scatter(slot->memory, transfer->iov, transfer->iov_count, transfer->length);
}

static void work_ended(struct verbs_endpoint *endpoint, struct verbs_work *work, int error, int provider_error)
{
    struct ofp_pending *pending = work->pending;

    if (work->scatters && !error)
        hand_over(work->slot, &pending->transfer);
    work_give(endpoint, work);
    if (pending)
        ofp_transfer_complete(pending, error, provider_error);
}

/* ------------------------------------------------------------------------------------------------------------ chain */

static uint32_t room(const struct verbs_pair *pair)
{
    return pair->transmit_depth - (uint32_t)(pair->head - pair->tail);
}

/* The next work request of the chain; there is room. */
static struct ibv_send_wr *next_request(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_chain *chain = &pair->chain;
    struct ibv_send_wr *request;

    if (chain->count == VERBS_CHAIN)
        verbs_send_flush(endpoint);
    /* The rest is for other operations or is set by `describe`: to clear it all is a good part of what a post costs. */
    request = &chain->requests[chain->count];
    request->next = NULL;
    request->sg_list = chain->segments[chain->count];
    request->num_sge = 0;
    request->send_flags = 0;
    return request;
}

/* It is part of the chain now; `work` ends with it, where not NULL, and somebody waits for that if it is `wanted`. */
static void commit(struct verbs_pair *pair, struct ibv_send_wr *request, struct verbs_work *work, bool wanted)
{
    struct verbs_chain *chain = &pair->chain;

    request->wr_id = pair->head;
    if (chain->count)
        chain->requests[chain->count - 1].next = request;
    chain->count++;
    pair->works[pair->head & pair->works_mask] = work;
    pair->head++;
    if (wanted)
        pair->wanted = pair->head;
}

void verbs_send_flush(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_chain *chain = &pair->chain;
    struct ibv_send_wr *bad;
    int error;

    if (!chain->count || !pair->qp)
        return;
    /* One of many tells of its end, and of that of all before it: if somebody waits, and lest the queue fill up. */
    if (pair->wanted > pair->signalled || pair->head - pair->signalled >= pair->transmit_depth / 4) {
        chain->requests[chain->count - 1].send_flags |= IBV_SEND_SIGNALED;
        pair->signalled = pair->head;
    }
    chain->count = 0;
    error = ibv_post_send(pair->qp, chain->requests, &bad);
    /* Room was counted, so this is a queue pair that is broken, which progress ends. */
    if (error) {
        verbs_core->log(OFP_LOG_ERROR, VERBS_NAME, "endpoint %u: the device takes no work request: %s",
                        endpoint->base->id, strerror(error));
        pair->flushed = true;
    }
}

/* ------------------------------------------------------------------------------------------------------- operations */

static enum ibv_wr_opcode opcode_of(const struct ofp_operation *op)
{
    bool with_data = op->flags & OFP_REMOTE_CQ_DATA;

    if (op->op == OFP_READ)
        return IBV_WR_RDMA_READ;
    if (op->op == OFP_WRITE)
        return with_data ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    return with_data ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
}

/* `offset`: into that remote segment. */
static void describe(struct ibv_send_wr *request, const struct ofp_transfer *transfer, uint32_t segment,
                     uint64_t offset)
{
    request->opcode = opcode_of(transfer->op);
    request->imm_data = htonl((uint32_t)transfer->op->data);
    if (transfer->remote_count) {
        request->wr.rdma.remote_addr = transfer->remote[segment].offset + offset;
        request->wr.rdma.rkey = (uint32_t)transfer->remote[segment].key;
    }
}

/* Data go with the last of several, which takes effect after the others. */
static void withhold_data(struct ibv_send_wr *request)
{
    if (request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        request->opcode = IBV_WR_RDMA_WRITE;
}

static void set_segment(struct ibv_send_wr *request, const void *memory, uint64_t length, uint32_t key)
{
    *request->sg_list = (struct ibv_sge){.addr = (uintptr_t)memory, .length = (uint32_t)length, .lkey = key};
    request->num_sge = length ? 1 : 0;
}

static bool is_read(const struct ofp_transfer *transfer) { return ofp_operation_is(transfer->op->op, OFP_READS); }
static bool is_atomic(const struct ofp_transfer *transfer)
{
    return ofp_operation_is(transfer->op->op, OFP_ATOMIC_KIND);
}

static int post_inline(struct verbs_endpoint *endpoint, const struct ofp_transfer *transfer, struct verbs_work *work)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct ibv_send_wr *request = next_request(endpoint);
    uint8_t *bytes = pair->chain.bytes[pair->chain.count];

    verbs_gather((char *)bytes, transfer->iov, transfer->iov_count, transfer->length);
    describe(request, transfer, 0, 0);
    set_segment(request, bytes, transfer->length, 0);
    request->send_flags = IBV_SEND_INLINE;
    commit(pair, request, work, work);
    return work ? OFP_POST_PENDING : OFP_POST_DONE;
}

/* One work request for each remote segment. */
static void post_slot(struct verbs_endpoint *endpoint, const struct ofp_transfer *transfer, struct verbs_work *work)
{
    uint32_t count = transfer->remote_count > 1 ? transfer->remote_count : 1;
    uint64_t position = 0;

    work->others = count - 1;
    if (!is_read(transfer))
        verbs_gather(work->slot->memory, transfer->iov, transfer->iov_count, transfer->length);
    for (uint32_t i = 0; i < count; i++) {
        struct ibv_send_wr *request = next_request(endpoint);
        uint64_t length = count > 1 ? transfer->remote[i].length : transfer->length;
        bool last = i + 1 == count;

        describe(request, transfer, i, 0);
        if (VERBS_UNLIKELY(is_atomic(transfer)))
            verbs_atomic_describe(request, transfer);
        set_segment(request, work->slot->memory + position, length, work->slot->key);
        if (!last)
            withhold_data(request);
        commit(&endpoint->pair, request, last ? work : NULL, last && work->pending);
        position += length;
    }
}

/* How much of the remote segment that a work has come to is left; of a message all that there is. */
static uint64_t left_there(struct verbs_work *work, const struct ofp_transfer *transfer)
{
    if (!transfer->remote_count)
        return transfer->length;
    while (work->remote_offset == transfer->remote[work->remote].length && work->remote + 1 < transfer->remote_count) {
        work->remote++;
        work->remote_offset = 0;
    }
    return transfer->remote[work->remote].length - work->remote_offset;
}

/* Local memory for at most so many bytes, as far as one work request can name it. */
static uint64_t take_memory(struct ibv_send_wr *request, struct verbs_work *work, uint64_t most, uint32_t segments)
{
    const struct ofp_transfer *transfer = &work->pending->transfer;
    uint64_t left = most;

    while (work->segment < transfer->iov_count && left && (uint32_t)request->num_sge < segments) {
        const struct iovec *piece = &transfer->iov[work->segment];
        uint64_t length = piece->iov_len - work->offset;

        if (length > left)
            length = left;
        if (length)
            request->sg_list[request->num_sge++] = (struct ibv_sge){.addr = (uintptr_t)piece->iov_base + work->offset,
                                                                    .length = (uint32_t)length,
                                                                    .lkey = work->keys[work->segment]};
        work->offset += length;
        left -= length;
        if (work->offset == piece->iov_len) {
            work->segment++;
            work->offset = 0;
        }
    }
    return most - left;
}

/* One work request's share of what is left. */
static void post_piece(struct verbs_endpoint *endpoint, struct verbs_work *work)
{
    const struct ofp_transfer *transfer = &work->pending->transfer;
    const struct verbs_limits *limits = &endpoint->domain->port->limits;
    struct ibv_send_wr *request = next_request(endpoint);
    uint64_t most = left_there(work, transfer), taken;

    describe(request, transfer, work->remote, work->remote_offset);
    taken = take_memory(request, work, most < limits->message_size ? most : limits->message_size, limits->segments);
    work->remote_offset += taken;
    work->posted += taken;
    if (work->posted < transfer->length) {
        withhold_data(request);
        work->others++;
    }
    commit(&endpoint->pair, request, work->posted == transfer->length ? work : NULL, true);
}

bool verbs_send_continue(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_work *work = pair->long_work;
    bool some = false;

    while (work && room(pair)) {
        post_piece(endpoint, work);
        some = true;
        if (work->posted == work->pending->transfer.length)
            work = NULL;
    }
    pair->long_work = work;
    if (some)
        verbs_send_flush(endpoint);
    return some;
}

static struct verbs_work *retain(struct verbs_endpoint *endpoint, struct ofp_peer *peer,
                                 const struct ofp_transfer *transfer)
{
    struct verbs_work *work = work_take(&endpoint->pair);

    if (!work)
        return NULL;
    work->pending = ofp_transfer_retain(endpoint->base, peer, transfer);
    if (!work->pending) {
        work_give(endpoint, work);
        return NULL;
    }
    return work;
}

/* It is, or has to be, answered into memory here. */
static bool comes_back(const struct ofp_transfer *transfer)
{
    return ofp_operation_is(transfer->op->op, OFP_READS | OFP_ATOMIC_KIND);
}

static int post_short(struct verbs_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    bool waits = transfer->op->flags & LEVELS || is_read(transfer);
    bool is_inline =
        transfer->length <= endpoint->pair.inline_size && transfer->remote_count <= 1 && !comes_back(transfer);
    struct verbs_slot *slot = NULL;
    struct verbs_work *work = NULL;

    if (!is_inline) {
        slot = verbs_slot_take(endpoint->domain);
        if (!slot)
            return -ENOMEM;
    }
    if (waits)
        work = retain(endpoint, peer, transfer);
    else if (slot)
        work = work_take(&endpoint->pair);
    if (!work && (waits || slot)) {
        if (slot)
            verbs_slot_give(endpoint->domain, slot);
        return -EAGAIN;
    }
    if (is_inline)
        return post_inline(endpoint, transfer, work);
    work->slot = slot;
    work->scatters = is_read(transfer);
    post_slot(endpoint, transfer, work);
    return work->pending ? OFP_POST_PENDING : OFP_POST_DONE;
}

static int post_registered(struct verbs_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct verbs_work *work = work_take(&endpoint->pair);
    int result;

    if (!work)
        return -EAGAIN;
    result = verbs_memory_keys(endpoint->domain, transfer, is_read(transfer), work->keys, work->registered,
                               &work->registered_count);
    if (!result) {
        work->pending = ofp_transfer_retain(endpoint->base, peer, transfer);
        result = work->pending ? 0 : -EAGAIN;
    }
    if (result) {
        work_give(endpoint, work);
        return result;
    }
    post_piece(endpoint, work);
    if (work->posted < transfer->length)
        endpoint->pair.long_work = work;
    return OFP_POST_PENDING;
}

/* What the device has no room for. */
static int check(const struct verbs_endpoint *endpoint, const struct ofp_transfer *transfer)
{
    if (VERBS_UNLIKELY(is_atomic(transfer))) {
        int result = verbs_atomic_check(endpoint->domain->port, transfer);

        if (result)
            return result;
    }
    for (uint32_t i = 0; i < transfer->remote_count; i++)
        if (transfer->remote[i].key > UINT32_MAX)
            return -OFP_ENOKEY;
    return transfer->op->flags & OFP_REMOTE_CQ_DATA && transfer->op->data > UINT32_MAX ? -EOVERFLOW : 0;
}

int verbs_send_post(struct verbs_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct verbs_pair *pair = &endpoint->pair;
    bool is_short = transfer->length <= pair->inline_size || is_atomic(transfer) ||
                    (transfer->length <= endpoint->domain->slots.size &&
                     (transfer->op->flags & OFP_INJECT || !verbs_memory_is_known(endpoint->domain, transfer)));
    int result = check(endpoint, transfer);

    if (result)
        return result;
    if (pair->long_work || room(pair) < (transfer->remote_count > 1 ? transfer->remote_count : 1))
        return -EAGAIN;
    result = is_short ? post_short(endpoint, peer, transfer) : post_registered(endpoint, peer, transfer);
    if (result >= 0 && (!(transfer->op->flags & OFP_MORE) || pair->chain.count == VERBS_CHAIN))
        verbs_send_flush(endpoint);
    return result;
}

/* -------------------------------------------------------------------------------------------------------------- end */

static struct verbs_work *take_oldest(struct verbs_pair *pair)
{
    uint64_t place = pair->tail++ & pair->works_mask;
    struct verbs_work *work = pair->works[place];

    pair->works[place] = NULL;
    return work;
}

void verbs_sends_ended(struct verbs_endpoint *endpoint, uint64_t number)
{
    struct verbs_pair *pair = &endpoint->pair;

    while (pair->tail < number) {
        struct verbs_work *work = take_oldest(pair);

        if (work)
            work_ended(endpoint, work, 0, 0);
    }
}

void verbs_send_failed(struct verbs_endpoint *endpoint, uint64_t number, int error, int provider_error)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_work *work = NULL;

    verbs_sends_ended(endpoint, number);
    /* A piece of a long operation is not its last one. */
    while (!work && pair->tail < pair->head)
        work = take_oldest(pair);
    if (!work) {
        work = pair->long_work;
        pair->long_work = NULL;
    }
    if (work)
        work_ended(endpoint, work, error, provider_error);
}

/* A write of nothing, which no key is needed for, ends after all before it. */
static void post_farewell(struct verbs_endpoint *endpoint)
{
    struct ibv_send_wr *request = next_request(endpoint);

    request->opcode = IBV_WR_RDMA_WRITE;
    request->wr.rdma.remote_addr = 0;
    request->wr.rdma.rkey = 0;
    commit(&endpoint->pair, request, NULL, true);
    endpoint->pair.farewell = endpoint->pair.head;
    verbs_send_flush(endpoint);
}

bool verbs_sends_are_over(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;

    if (!pair->qp)
        return true;
    if (!pair->farewell && !pair->long_work && room(pair))
        post_farewell(endpoint);
    return pair->farewell && pair->tail >= pair->farewell;
}

void verbs_sends_drop(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_work *work;

    /* The core ends the operations itself. */
    while (pair->tail < pair->head) {
        work = take_oldest(pair);
        if (work)
            work_give(endpoint, work);
    }
    if (pair->long_work)
        work_give(endpoint, pair->long_work);
    pair->long_work = NULL;
    pair->chain.count = 0;
    while ((work = pair->free_works)) {
        pair->free_works = work->next;
        free(work);
    }
    free(pair->works);
    pair->works = NULL;
}
