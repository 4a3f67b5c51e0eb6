/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/send.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"
#include "memory/slot.h"
#include "queue/atomic.h"

/* These flags need an answer of the peer's device. */
#define LEVELS (OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)

/* ------------------------------------------------------------------------------------------------------------ works */

static struct verbs_send *allocate_send(struct verbs_pair *pair)
{
    struct verbs_send *send = pair->free_sends;

    if (!send)
        return calloc(1, sizeof(*send));
    pair->free_sends = send->next;
    memset(send, 0, offsetof(struct verbs_send, registered));
    return send;
}

static void free_send(struct verbs_endpoint *endpoint, struct verbs_send *send)
{
    struct verbs_pair *pair = &endpoint->pair;

    if (send->slot)
        verbs_slot_free(endpoint->domain, send->slot);
    verbs_memory_release_keys(endpoint->domain, send->registered, &send->registered_count);
    send->next = pair->free_sends;
    pair->free_sends = send;
}

/* Copy a fetched result, or read data, to the memory of the operation. */
static void deliver_result(const struct verbs_slot *slot, const struct ofp_transfer *transfer)
{
    if (ofp_operation_is(transfer->op->op, OFP_ATOMIC_KIND))
        memcpy(transfer->result, slot->memory, VERBS_ATOMIC_SIZE);
    else
        verbs_iov_scatter(slot->memory, transfer->iov, transfer->iov_count, transfer->length);
}

static void complete_send(struct verbs_endpoint *endpoint, struct verbs_send *send, int error, int provider_error)
{
    struct ofp_pending *pending = send->pending;

    OFP_CHECK(!send->scatters || (send->slot && pending));
    if (send->scatters && !error)
        deliver_result(send->slot, &pending->transfer);
    free_send(endpoint, send);
    if (pending)
        ofp_transfer_complete(pending, error, provider_error);
}

/* ------------------------------------------------------------------------------------------------------------ chain */

/* Reserve a work request of the chain; the queue has space. */
static struct ibv_send_wr *reserve_request(struct verbs_endpoint *endpoint)
{
    struct verbs_chain *chain = &endpoint->pair.chain;

    if (verbs_chain_is_full(chain))
        verbs_sends_flush(endpoint);
    return verbs_chain_reserve_request(chain);
}

/* Append the work request to the chain. `send` ends with it, or is NULL. `wanted`: its end is awaited. */
static void append_request(struct verbs_pair *pair, struct ibv_send_wr *request, struct verbs_send *send, bool wanted)
{
    request->wr_id = pair->queue.head;
    verbs_chain_append(&pair->chain, request);
    pair->sends[verbs_send_queue_append(&pair->queue)] = send;
    if (wanted)
        pair->wanted = pair->queue.head;
}

void verbs_sends_flush(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_chain *chain = &pair->chain;
    int error;

    if (!chain->count || !pair->qp)
        return;
    /*
     * A completion of one is one of all before it. One is requested if an end is awaited, or before the queue fills
     * up.
     */
    if (pair->wanted > pair->queue.signalled || verbs_send_queue_needs_signal(&pair->queue))
        verbs_send_queue_set_signal(&pair->queue, &chain->requests[chain->count - 1]);
    error = verbs_chain_post(chain, pair->qp);
    /* Progress ends the connection. */
    if (error) {
        verbs_core->log(OFP_LOG_ERROR, VERBS_NAME, "endpoint %u: the device takes no work request: %s",
                        endpoint->base->id, strerror(error));
        pair->flushed = true;
    }
}

/* ------------------------------------------------------------------------------------------------------- operations */

static enum ibv_wr_opcode opcode_of_operation(const struct ofp_operation *op)
{
    bool with_data = op->flags & OFP_REMOTE_CQ_DATA;

    if (op->op == OFP_READ)
        return IBV_WR_RDMA_READ;
    if (op->op == OFP_WRITE)
        return with_data ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    return with_data ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
}

/* `offset` is inside the remote segment. */
static void fill_request(struct ibv_send_wr *request, const struct ofp_transfer *transfer, uint32_t segment,
                         uint64_t offset)
{
    request->opcode = opcode_of_operation(transfer->op);
    request->imm_data = htonl((uint32_t)transfer->op->data);
    if (transfer->remote_count) {
        request->wr.rdma.remote_addr = transfer->remote[segment].offset + offset;
        request->wr.rdma.rkey = (uint32_t)transfer->remote[segment].key;
    }
}

/* Immediate data go with the last work request of an operation. */
static void clear_immediate_data(struct ibv_send_wr *request)
{
    if (request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        request->opcode = IBV_WR_RDMA_WRITE;
}

static bool is_read(const struct ofp_transfer *transfer) { return ofp_operation_is(transfer->op->op, OFP_READS); }
static bool is_atomic(const struct ofp_transfer *transfer)
{
    return ofp_operation_is(transfer->op->op, OFP_ATOMIC_KIND);
}

static int post_inline(struct verbs_endpoint *endpoint, const struct ofp_transfer *transfer, struct verbs_send *send)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct ibv_send_wr *request = reserve_request(endpoint);
    uint8_t *bytes = pair->chain.bytes[pair->chain.count];

    verbs_iov_gather((char *)bytes, transfer->iov, transfer->iov_count, transfer->length);
    fill_request(request, transfer, 0, 0);
    verbs_request_set_segment(request, bytes, transfer->length, 0);
    request->send_flags = IBV_SEND_INLINE;
    append_request(pair, request, send, send);
    return send ? OFP_POST_PENDING : OFP_POST_DONE;
}

/* One work request for each remote segment. */
static void post_slot(struct verbs_endpoint *endpoint, const struct ofp_transfer *transfer, struct verbs_send *send)
{
    uint32_t count = transfer->remote_count > 1 ? transfer->remote_count : 1;
    uint64_t position = 0;

    send->others = count - 1;
    if (!is_read(transfer))
        verbs_iov_gather(send->slot->memory, transfer->iov, transfer->iov_count, transfer->length);
    for (uint32_t i = 0; i < count; i++) {
        struct ibv_send_wr *request = reserve_request(endpoint);
        uint64_t length = count > 1 ? transfer->remote[i].length : transfer->length;
        bool last = i + 1 == count;

        fill_request(request, transfer, i, 0);
        if (VERBS_UNLIKELY(is_atomic(transfer)))
            verbs_atomic_fill_request(request, transfer);
        verbs_request_set_segment(request, send->slot->memory + position, length, send->slot->key);
        if (!last)
            clear_immediate_data(request);
        append_request(&endpoint->pair, request, last ? send : NULL, last && send->pending);
        position += length;
    }
}

/*
 * Move to the next remote segment if this one is done. Returns the bytes that remain in it; for messages, all bytes.
 */
static uint64_t advance_remote_segment(struct verbs_send *send, const struct ofp_transfer *transfer)
{
    if (!transfer->remote_count)
        return transfer->length;
    while (send->remote_offset == transfer->remote[send->remote].length && send->remote + 1 < transfer->remote_count) {
        send->remote++;
        send->remote_offset = 0;
    }
    return transfer->remote[send->remote].length - send->remote_offset;
}

/* Append local memory of at most `most` bytes. Returns the bytes that one work request can name. */
static uint64_t append_local_segments(struct ibv_send_wr *request, struct verbs_send *send, uint64_t most,
                                      uint32_t segments)
{
    const struct ofp_transfer *transfer = &send->pending->transfer;
    uint64_t left = most;

    while (send->segment < transfer->iov_count && left && (uint32_t)request->num_sge < segments) {
        const struct iovec *piece = &transfer->iov[send->segment];
        uint64_t length = piece->iov_len - send->offset;

        if (length > left)
            length = left;
        if (length)
            request->sg_list[request->num_sge++] = (struct ibv_sge){.addr = (uintptr_t)piece->iov_base + send->offset,
                                                                    .length = (uint32_t)length,
                                                                    .lkey = send->keys[send->segment]};
        send->offset += length;
        left -= length;
        if (send->offset == piece->iov_len) {
            send->segment++;
            send->offset = 0;
        }
    }
    return most - left;
}

/* Post one work request of a long operation. */
static void post_piece(struct verbs_endpoint *endpoint, struct verbs_send *send)
{
    const struct ofp_transfer *transfer = &send->pending->transfer;
    const struct verbs_limits *limits = &endpoint->domain->port->limits;
    struct ibv_send_wr *request = reserve_request(endpoint);
    uint64_t most = advance_remote_segment(send, transfer), length;

    fill_request(request, transfer, send->remote, send->remote_offset);
    length = append_local_segments(request, send, most < limits->message_size ? most : limits->message_size,
                                   limits->segments);
    send->remote_offset += length;
    send->posted += length;
    OFP_CHECK(send->posted <= transfer->length);
    if (send->posted < transfer->length) {
        clear_immediate_data(request);
        send->others++;
    }
    append_request(&endpoint->pair, request, send->posted == transfer->length ? send : NULL, true);
}

bool verbs_sends_resume(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_send *send = pair->long_send;
    bool some = false;

    while (send && verbs_send_queue_count_space(&pair->queue)) {
        post_piece(endpoint, send);
        some = true;
        if (send->posted == send->pending->transfer.length)
            send = NULL;
    }
    pair->long_send = send;
    if (some)
        verbs_sends_flush(endpoint);
    return some;
}

static struct verbs_send *retain_send(struct verbs_endpoint *endpoint, struct ofp_peer *peer,
                                      const struct ofp_transfer *transfer)
{
    struct verbs_send *send = allocate_send(&endpoint->pair);

    if (!send)
        return NULL;
    send->pending = ofp_transfer_retain(endpoint->base, peer, transfer);
    if (!send->pending) {
        free_send(endpoint, send);
        return NULL;
    }
    return send;
}

/* The operation's result is written into local memory. */
static bool needs_result_memory(const struct ofp_transfer *transfer)
{
    return ofp_operation_is(transfer->op->op, OFP_READS | OFP_ATOMIC_KIND);
}

static int post_short(struct verbs_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    bool waits = transfer->op->flags & LEVELS || is_read(transfer);
    bool is_inline =
        transfer->length <= endpoint->pair.inline_size && transfer->remote_count <= 1 && !needs_result_memory(transfer);
    struct verbs_slot *slot = NULL;
    struct verbs_send *send = NULL;

    if (!is_inline) {
        slot = verbs_slot_allocate(endpoint->domain);
        if (!slot)
            return -ENOMEM;
    }
    if (waits)
        send = retain_send(endpoint, peer, transfer);
    else if (slot)
        send = allocate_send(&endpoint->pair);
    if (!send && (waits || slot)) {
        if (slot)
            verbs_slot_free(endpoint->domain, slot);
        return -EAGAIN;
    }
    if (is_inline)
        return post_inline(endpoint, transfer, send);
    send->slot = slot;
    send->scatters = is_read(transfer);
    post_slot(endpoint, transfer, send);
    return send->pending ? OFP_POST_PENDING : OFP_POST_DONE;
}

static int post_registered(struct verbs_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct verbs_send *send = allocate_send(&endpoint->pair);
    int result;

    if (!send)
        return -EAGAIN;
    result = verbs_memory_acquire_keys(endpoint->domain, transfer, is_read(transfer), send->keys, send->registered,
                                       &send->registered_count);
    if (!result) {
        send->pending = ofp_transfer_retain(endpoint->base, peer, transfer);
        result = send->pending ? 0 : -EAGAIN;
    }
    if (result) {
        free_send(endpoint, send);
        return result;
    }
    post_piece(endpoint, send);
    if (send->posted < transfer->length)
        endpoint->pair.long_send = send;
    return OFP_POST_PENDING;
}

/* Whether the device can carry out the operation: 0 or a negative errno. */
static int check_send(const struct verbs_endpoint *endpoint, const struct ofp_transfer *transfer)
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
                     (transfer->op->flags & OFP_INJECT || !verbs_memory_is_registered(endpoint->domain, transfer)));
    int result = check_send(endpoint, transfer);

    if (result)
        return result;
    if (pair->long_send ||
        verbs_send_queue_count_space(&pair->queue) < (transfer->remote_count > 1 ? transfer->remote_count : 1))
        return -EAGAIN;
    result = is_short ? post_short(endpoint, peer, transfer) : post_registered(endpoint, peer, transfer);
    /* The device keeps the order: an operation that ends with its work request ends behind all before it. */
    if (result >= 0 && ofp_operation_is(transfer->op->op, OFP_REMOTE))
        pair->unconfirmed = result == OFP_POST_DONE;
    if (result >= 0 && (!(transfer->op->flags & OFP_MORE) || verbs_chain_is_full(&pair->chain)))
        verbs_sends_flush(endpoint);
    return result;
}

/* A write of no bytes needs no key, so any place will do. */
bool verbs_peer_needs_flush(const struct ofp_peer *peer, struct ofp_remote_segment *there)
{
    *there = (struct ofp_remote_segment){0};
    return verbs_endpoint_of(peer->endpoint)->pair.unconfirmed;
}

/* -------------------------------------------------------------------------------------------------------------- end */

static struct verbs_send *pop_oldest_send(struct verbs_pair *pair)
{
    uint32_t place = verbs_send_queue_pop(&pair->queue);
    struct verbs_send *send = pair->sends[place];

    pair->sends[place] = NULL;
    return send;
}

void verbs_sends_ended(struct verbs_endpoint *endpoint, uint64_t number)
{
    struct verbs_pair *pair = &endpoint->pair;

    OFP_CHECK(number <= pair->queue.head);
    while (pair->queue.tail < number) {
        struct verbs_send *send = pop_oldest_send(pair);

        if (send)
            complete_send(endpoint, send, 0, 0);
    }
}

void verbs_send_failed(struct verbs_endpoint *endpoint, uint64_t number, int error, int provider_error)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_send *send = NULL;

    verbs_sends_ended(endpoint, number);
    /* A failed piece of a long operation is not its last work request. */
    while (!send && !verbs_send_queue_is_empty(&pair->queue))
        send = pop_oldest_send(pair);
    if (!send) {
        send = pair->long_send;
        pair->long_send = NULL;
    }
    if (send)
        complete_send(endpoint, send, error, provider_error);
}

/* The goodbye: an empty write needs no key, and ends after all work requests before it. */
static void post_goodbye(struct verbs_endpoint *endpoint)
{
    struct ibv_send_wr *request = reserve_request(endpoint);

    OFP_CHECK(!endpoint->pair.goodbye && !endpoint->pair.long_send);
    request->opcode = IBV_WR_RDMA_WRITE;
    request->wr.rdma.remote_addr = 0;
    request->wr.rdma.rkey = 0;
    append_request(&endpoint->pair, request, NULL, true);
    endpoint->pair.goodbye = endpoint->pair.queue.head;
    verbs_sends_flush(endpoint);
}

bool verbs_sends_drain(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;

    if (!pair->qp)
        return true;
    if (!pair->goodbye && !pair->long_send && verbs_send_queue_count_space(&pair->queue))
        post_goodbye(endpoint);
    return pair->goodbye && pair->queue.tail >= pair->goodbye;
}

void verbs_sends_discard(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_send *send;

    OFP_CHECK(!pair->qp && !pair->cq);
    /* The core ends the operations itself. */
    while (!verbs_send_queue_is_empty(&pair->queue)) {
        send = pop_oldest_send(pair);
        if (send)
            free_send(endpoint, send);
    }
    if (pair->long_send)
        free_send(endpoint, pair->long_send);
    pair->long_send = NULL;
    pair->chain.count = 0;
    while ((send = pair->free_sends)) {
        pair->free_sends = send->next;
        free(send);
    }
    free(pair->sends);
    pair->sends = NULL;
}
