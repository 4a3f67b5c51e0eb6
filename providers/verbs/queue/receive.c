/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/receive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"
#include "memory/slot.h"
#include "queue/fault.h"

static struct verbs_receive *receive_of_pending(const struct ofp_pending *pending)
{
    return (struct verbs_receive *)(uintptr_t)pending->provider_data[0];
}

/* The device has returned the receive. */
static void mark_receive_unposted(struct verbs_pair *pair, struct verbs_receive *receive)
{
    OFP_CHECK(receive->posted && pair->posted_receives > 0);
    OFP_CHECK(pair->receive_memory >= receive->cost);
    receive->posted = false;
    pair->posted_receives--;
    pair->receive_memory -= receive->cost;
}

static void free_receive(struct verbs_endpoint *endpoint, struct verbs_receive *receive)
{
    if (receive->posted)
        mark_receive_unposted(&endpoint->pair, receive);
    if (receive->slot)
        verbs_slot_free(endpoint->domain, receive->slot);
    verbs_memory_release_keys(endpoint->domain, receive->registered, &receive->registered_count);
    ofp_list_remove(&receive->node);
    receive->node.next = endpoint->pair.free_receives;
    endpoint->pair.free_receives = &receive->node;
}

static struct verbs_receive *allocate_receive(struct verbs_pair *pair)
{
    struct verbs_receive *receive;

    if (!pair->free_receives)
        return calloc(1, sizeof(*receive));
    receive = OFP_CONTAINER_OF(pair->free_receives, struct verbs_receive, node);
    pair->free_receives = receive->node.next;
    memset(receive, 0, offsetof(struct verbs_receive, registered));
    return receive;
}

static void fail_receive(struct verbs_endpoint *endpoint, struct verbs_receive *receive, int error, int provider_error)
{
    struct ofp_pending *pending = receive->pending;
    struct ofp_message message = {.peer = endpoint->peer,
                                  .source = endpoint->peer ? endpoint->peer->index : OFP_PEER_UNKNOWN,
                                  .channel = OFP_CHANNEL_MESSAGE};
    struct ofp_offloaded offloaded = {.error = error, .provider_error = provider_error};

    free_receive(endpoint, receive);
    ofp_offloaded_receive_complete(pending, &message, &offloaded);
}

/* ---------------------------------------------------------------------------------------------------------- posting */

static uint32_t add_receive_segment(struct ibv_sge *segments, uint32_t count, const void *memory, uint64_t length,
                                    uint32_t key)
{
    if (!length)
        return count;
    segments[count] = (struct ibv_sge){.addr = (uintptr_t)memory, .length = (uint32_t)length, .lkey = key};
    return count + 1;
}

/*
 * A message longer than its receive ends the connection, and the device knows no other way. So each receive has more
 * memory than was posted: a slot is used whole, and behind other memory follows the shared overflow slot.
 */
static uint32_t build_receive_segments(const struct verbs_slots *slots, const struct verbs_receive *receive,
                                       struct ibv_sge *segments)
{
    const struct ofp_transfer *transfer = &receive->pending->transfer;
    uint32_t count = 0;

    if (receive->slot)
        return add_receive_segment(segments, count, receive->slot->memory, slots->size, receive->slot->key);
    for (uint32_t i = 0; i < transfer->iov_count; i++)
        count =
            add_receive_segment(segments, count, transfer->iov[i].iov_base, transfer->iov[i].iov_len, receive->keys[i]);
    return add_receive_segment(segments, count, slots->overflow->memory, slots->size, slots->overflow->key);
}

static int acquire_receive_keys(struct verbs_endpoint *endpoint, struct verbs_receive *receive)
{
    int result = 0;

    if (!receive->slot && !receive->known)
        result = verbs_memory_acquire_keys(endpoint->domain, &receive->pending->transfer, true, receive->keys,
                                           receive->registered, &receive->registered_count);
    receive->known = !result;
    return result;
}

static int post_receive(struct verbs_endpoint *endpoint, struct verbs_receive *receive)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct ibv_sge segments[VERBS_SEGMENTS + 1];
    struct ibv_recv_wr request = {.wr_id = (uintptr_t)receive, .sg_list = segments}, *bad;
    int error = -acquire_receive_keys(endpoint, receive);

    if (error)
        return -error;
    OFP_CHECK(!receive->posted && pair->posted_receives < pair->receive_depth);
    request.num_sge = (int)build_receive_segments(&endpoint->domain->slots, receive, segments);
    error = ibv_post_recv(pair->qp, &request, &bad);
    if (!error) {
        receive->posted = true;
        pair->posted_receives++;
        pair->receive_memory += receive->cost;
    }
    return -error;
}

/* At least one receive is posted, even if it exceeds the limit. */
static bool has_space_for_receive(const struct verbs_endpoint *endpoint, const struct verbs_receive *receive)
{
    const struct verbs_pair *pair = &endpoint->pair;

    return pair->posted_receives < pair->receive_depth &&
           (!receive->cost || !pair->receive_memory ||
            pair->receive_memory + receive->cost <= endpoint->domain->settings.receive_memory);
}

/* The first unposted receive. Posted receives precede it. */
static struct verbs_receive *find_unposted_receive(struct verbs_pair *pair)
{
    struct ofp_list *node = pair->receives.previous;

    while (node != &pair->receives && !OFP_CONTAINER_OF(node, struct verbs_receive, node)->posted)
        node = node->previous;
    return node->next == &pair->receives ? NULL : OFP_CONTAINER_OF(node->next, struct verbs_receive, node);
}

/* Post receives while the device has space. */
static void post_deferred_receives(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_receive *receive = pair->qp ? find_unposted_receive(pair) : NULL;

    while (receive && has_space_for_receive(endpoint, receive)) {
        struct ofp_list *following = receive->node.next;
        int result = post_receive(endpoint, receive);

        /* Other receives return registered memory when they end. Without any, waiting would not help. */
        if (result && pair->posted_receives)
            return;
        if (result)
            fail_receive(endpoint, receive, -result, endpoint->domain->registration_error);
        receive = following == &pair->receives ? NULL : OFP_CONTAINER_OF(following, struct verbs_receive, node);
    }
}

/* A slot or a registered region is chosen at once. Other memory is registered when the receive is posted. */
static int choose_receive_memory(struct verbs_endpoint *endpoint, struct verbs_receive *receive,
                                 const struct ofp_transfer *transfer)
{
    struct verbs_domain *domain = endpoint->domain;

    if (verbs_memory_is_registered(domain, transfer))
        return 0;
    if (transfer->length > domain->slots.size) {
        receive->cost = transfer->length;
        return 0;
    }
    receive->slot = verbs_slot_allocate(domain);
    return receive->slot ? 0 : -ENOMEM;
}

int verbs_receive_post(struct verbs_endpoint *endpoint, const struct ofp_transfer *transfer)
{
    struct verbs_pair *pair = &endpoint->pair;
    struct verbs_receive *receive;
    int result;

    if (transfer->op->flags & OFP_PEEK)
        return -EOPNOTSUPP;
    receive = allocate_receive(pair);
    if (!receive)
        return -ENOMEM;
    result = choose_receive_memory(endpoint, receive, transfer);
    if (!result) {
        receive->pending = ofp_transfer_retain(endpoint->base, NULL, transfer);
        result = receive->pending ? 0 : -ENOMEM;
    }
    ofp_list_append(&pair->receives, &receive->node);
    if (result) {
        free_receive(endpoint, receive);
        return result;
    }
    receive->pending->provider_data[0] = (uintptr_t)receive;
    if (pair->posted_receives < pair->receive_depth)
        post_deferred_receives(endpoint);
    return OFP_POST_PENDING;
}

/* ----------------------------------------------------------------------------------------------------------- ending */

static void message_arrived(struct verbs_endpoint *endpoint, struct verbs_receive *receive, const struct ibv_wc *wc)
{
    struct ofp_pending *pending = receive->pending;
    const struct ofp_transfer *transfer = &pending->transfer;
    struct ofp_message message = {.peer = endpoint->peer,
                                  .source = endpoint->peer ? endpoint->peer->index : OFP_PEER_UNKNOWN,
                                  .channel = OFP_CHANNEL_MESSAGE,
                                  .length = wc->byte_len};
    struct ofp_offloaded offloaded = {0};

    if (wc->wc_flags & IBV_WC_WITH_IMM) {
        message.has_data = true;
        message.data = ntohl(wc->imm_data);
    }
    if (message.length > transfer->length)
        offloaded.error = OFP_ETRUNC;
    if (receive->slot)
        verbs_iov_scatter(receive->slot->memory, transfer->iov, transfer->iov_count, message.length);
    free_receive(endpoint, receive);
    post_deferred_receives(endpoint);
    ofp_offloaded_receive_complete(pending, &message, &offloaded);
}

/* Data of a write only used the place of the receive in the device's queue. The receive is posted again, last. */
static void write_data_arrived(struct verbs_endpoint *endpoint, struct verbs_receive *receive, const struct ibv_wc *wc)
{
    mark_receive_unposted(&endpoint->pair, receive);
    ofp_list_remove(&receive->node);
    ofp_list_append(&endpoint->pair.receives, &receive->node);
    post_deferred_receives(endpoint);
    ofp_remote_event(endpoint->base, endpoint->peer, NULL, OFP_COMPLETED_REMOTE_WRITE | OFP_COMPLETED_REMOTE_CQ_DATA,
                     ntohl(wc->imm_data), wc->byte_len);
}

void verbs_receive_ended(struct verbs_endpoint *endpoint, const struct ibv_wc *wc)
{
    struct verbs_receive *receive = (struct verbs_receive *)(uintptr_t)wc->wr_id;

    if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        write_data_arrived(endpoint, receive, wc);
    else
        message_arrived(endpoint, receive, wc);
}

void verbs_receive_failed(struct verbs_endpoint *endpoint, const struct ibv_wc *wc, int error)
{
    fail_receive(endpoint, (struct verbs_receive *)(uintptr_t)wc->wr_id, error, verbs_code_of_fault(wc->status));
}

int verbs_receive_cancel(struct ofp_endpoint *base, struct ofp_pending *pending)
{
    struct verbs_receive *receive = receive_of_pending(pending);

    /* The endpoint is closed already. */
    if (!receive)
        return 0;
    if (receive->posted)
        return -ENOENT;
    free_receive(verbs_endpoint_of(base), receive);
    return 0;
}

void verbs_receives_mark_unposted(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;

    for (struct ofp_list *node = pair->receives.next; node != &pair->receives; node = node->next)
        OFP_CONTAINER_OF(node, struct verbs_receive, node)->posted = false;
    pair->posted_receives = 0;
    pair->receive_memory = 0;
}

void verbs_receives_free(struct verbs_endpoint *endpoint)
{
    struct verbs_pair *pair = &endpoint->pair;

    OFP_CHECK(pair->posted_receives == 0);
    while (!ofp_list_empty(&pair->receives)) {
        struct verbs_receive *receive = OFP_CONTAINER_OF(pair->receives.next, struct verbs_receive, node);

        receive->pending->provider_data[0] = 0;
        free_receive(endpoint, receive);
    }
    while (pair->free_receives)
        free(allocate_receive(pair));
}
