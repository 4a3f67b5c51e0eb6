/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing, arrivals, and receives in flight. */
#include "match/receive_context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/pool.h"
#include "base/slab.h"
#include "match/lent.h"
#include "match/posted.h"
#include "match/receive_claim.h"
#include "match/receive_fetch.h"
#include "match/receive_many.h"
#include "match/receive_matched.h"
#include "match/receive_stream.h"
#include "match/receiver.h"
#include "match/unexpected.h"
#include "object/endpoint.h"
#include "object/peer.h"
#include "ofipy/iov.h"

static int open_context_parts(struct ofpi_receive_context *context, const struct ofpi_receive_context_attr *attr)
{
    uint64_t seed[2];
    int result;

    /* The seed is secret: peers choose tags, and must not be able to choose collisions. */
    if (getrandom(seed, sizeof(seed), 0) != sizeof(seed))
        return -EIO;
    result = ofpi_posted_open(&context->posted, seed);
    if (result)
        return result;
    result = ofpi_unexpected_open(&context->unexpected, seed, attr->unexpected_limit, attr->announcement_limit);
    if (result) {
        ofpi_posted_close(&context->posted);
        return result;
    }
    ofpi_inflight_open(&context->in_flight);
    ofpi_slab_open(&context->segments, sizeof(struct ofpi_segments));
    ofpi_slab_open(&context->many, sizeof(struct ofpi_many));
    context->posted.slab.backing = context->in_flight.pool.backing = context->many.backing = attr->entries;
    context->entries = attr->entries;
    context->min_multi_recv = attr->min_multi_recv;
    context->complete = attr->complete;
    ofpi_receive_pull_open(context, attr->domain, attr->start_timer);
    return 0;
}

int ofpi_receive_context_open(const struct ofpi_receive_context_attr *attr, struct ofpi_receive_context **context)
{
    struct ofpi_receive_context *opened = calloc(1, sizeof(*opened));
    int result = opened ? open_context_parts(opened, attr) : -ENOMEM;

    if (result) {
        free(opened);
        return result;
    }
    *context = opened;
    return 0;
}

void ofpi_receive_context_close(struct ofpi_receive_context *context)
{
    ofpi_receive_pull_close(context);
    ofpi_posted_close(&context->posted);
    ofpi_unexpected_close(&context->unexpected);
    ofpi_inflight_close(&context->in_flight);
    ofpi_slab_close(&context->segments);
    ofpi_slab_close(&context->many);
    free(context);
}

uint64_t ofpi_receive_context_min_multi_recv(const struct ofpi_receive_context *context)
{
    return context->min_multi_recv;
}

void ofpi_receive_context_set_min_multi_recv(struct ofpi_receive_context *context, uint64_t bytes)
{
    context->min_multi_recv = bytes;
}

void ofpi_receive_context_statistics(const struct ofpi_receive_context *context,
                                     struct ofpi_receive_context_statistics *statistics)
{
    *statistics = (struct ofpi_receive_context_statistics){
        .posted_receives = context->posted.count,
        .unexpected_messages = context->unexpected.messages,
        .unexpected_bytes = context->unexpected.bytes,
        .announced_messages = context->unexpected.announced,
        .linear_searches = context->unexpected.linear_searches,
    };
}

/* -------------------------------------------------------------------------------------------------------- arrivals */

bool ofpi_receive_context_is_announce_only(const struct ofpi_receive_context *context)
{
    return context->unexpected.announce_only;
}

/* No posted receive matches: store the message until one does. */
static bool store_unmatched(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                            const struct ofp_message *message, const void *payload, bool announced)
{
    struct ofpi_unexpected *unexpected =
        ofpi_unexpected_store(&context->unexpected, endpoint, message, payload, announced, false);

    if (!unexpected)
        return false;
    if (ofpi_unexpected_insert(&context->unexpected, unexpected)) {
        ofpi_unexpected_free(&context->unexpected, unexpected);
        return false;
    }
    return true;
}

/* The matched receive has OFP_HOLD: store the message, and set it aside for that receive. */
static bool set_aside_arrival(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                              const struct ofp_message *message, const void *payload, bool announced,
                              struct ofpi_posted *posted)
{
    struct ofpi_unexpected *unexpected =
        ofpi_unexpected_store(&context->unexpected, endpoint, message, payload, announced, true);

    if (!unexpected)
        return false;
    ofpi_receive_set_aside(context, message, unexpected, posted);
    return true;
}

int ofpi_message_arrived(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                         const struct ofp_message *message, const void *payload)
{
    struct ofpi_posted *posted =
        ofpi_receive_match(context, message->channel, message->tag, message->source, message->length);
    struct ofpi_receiver piece;

    if (!posted)
        return store_unmatched(context, endpoint, message, payload, false) ? 0 : -EAGAIN;
    if (posted->receiver.op_flags & OFP_HOLD)
        return set_aside_arrival(context, endpoint, message, payload, false, posted) ? 0 : -EAGAIN;
    if (__builtin_expect(posted->receiver.op_flags & OFP_MULTI_RECV, 0)) {
        if (!ofpi_many_reserve_completion(context, &posted->receiver))
            return -EAGAIN;
        piece = ofpi_receive_pop_receiver(context, posted, message->length);
        ofpi_receive_deliver(context, endpoint, &piece, message, payload);
        return 0;
    }
    ofpi_posted_remove(&context->posted, posted);
    ofpi_receive_deliver(context, endpoint, &posted->receiver, message, payload);
    ofpi_posted_free(&context->posted, posted);
    return 0;
}

int ofpi_message_announced(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                           const struct ofp_message *message)
{
    struct ofpi_posted *posted =
        ofpi_receive_match(context, message->channel, message->tag, message->source, message->length);
    struct ofpi_receiver receiver;
    struct ofpi_inflight *inflight;

    if (!posted)
        return store_unmatched(context, endpoint, message, NULL, true) ? 0 : -ENOBUFS;
    if (posted->receiver.op_flags & OFP_HOLD)
        return set_aside_arrival(context, endpoint, message, NULL, true, posted) ? 0 : -ENOBUFS;
    /* Allocate first: a posted receive that was removed could not return to its place in the order. */
    inflight = ofpi_inflight_allocate(&context->in_flight, context);
    if (!inflight)
        return -ENOBUFS;
    if (!ofpi_many_reserve_completion(context, &posted->receiver)) {
        ofpi_inflight_free(&context->in_flight, inflight);
        return -ENOBUFS;
    }
    receiver = ofpi_receive_pop_receiver(context, posted, message->length);
    ofpi_inflight_start(inflight, endpoint, message, &receiver);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- receives in flight */

void ofpi_receive_write(struct ofp_receive *receive, uint64_t offset, const void *data, uint64_t length)
{
    struct ofpi_inflight *inflight = (struct ofpi_inflight *)receive;

    if (__builtin_expect(inflight->unexpected != NULL || inflight->packs, 0)) {
        /* The peer may send more than it announced: write no more than the memory can contain. */
        if (offset < inflight->memory.iov_len)
            ofp_memory_copy((char *)inflight->memory.iov_base + offset, data,
                            length < inflight->memory.iov_len - offset ? length : inflight->memory.iov_len - offset);
    } else if (!inflight->dropped) {
        ofpi_receiver_write(&inflight->receiver, offset, data, length);
    }
}

struct ofp_receive *ofpi_receive_find(struct ofp_peer *peer, uint64_t id)
{
    struct ofpi_receive_context *context = ((struct ofpi_endpoint *)peer->endpoint)->receive_context;
    struct ofpi_inflight *inflight = ofpi_pool_find(&context->in_flight.pool, id);

    /* The peer sent the id, so it may be invalid, or name a receive of another peer. */
    return inflight && inflight->peer == peer ? &inflight->base : NULL;
}

void ofpi_receive_set_protocol(struct ofp_receive *receive, enum ofp_protocol protocol)
{
    struct ofpi_inflight *inflight = (struct ofpi_inflight *)receive;

    ofp_message_set_protocol(&receive->message, protocol);
    if (inflight->unexpected)
        inflight->unexpected->protocol = (uint8_t)protocol;
}

void ofpi_receive_complete(struct ofp_receive *receive, int error, int provider_error)
{
    struct ofpi_inflight *inflight = (struct ofpi_inflight *)receive;
    struct ofpi_receive_context *context = inflight->context;

    /* The peer may be that of a lane, and the message is counted for the core's own peer. */
    receive->message.peer = inflight->peer;
    if (__builtin_expect(inflight->unexpected != NULL, 0)) {
        ofpi_stream_complete(context, inflight, error, provider_error);
    } else if (!inflight->dropped) {
        if (__builtin_expect(inflight->packs, 0))
            error = ofpi_inflight_unpack(inflight, error);
        if (!error && receive->message.length > inflight->receiver.memory.iov_len)
            error = OFP_ETRUNC;
        ofpi_receive_end(context, inflight->endpoint, &inflight->receiver, &receive->message,
                         (struct ofpi_receive_result){.error = error, .provider_error = provider_error});
    }
    ofpi_inflight_free(&context->in_flight, inflight);
}

/* ------------------------------------------------------------------------------------ end of an endpoint or a peer */

static void discard_messages(struct ofpi_receive_context *context, struct ofp_list *messages,
                             const struct ofp_endpoint *endpoint)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, messages) {
        struct ofpi_unexpected *unexpected = OFP_CONTAINER_OF(node, struct ofpi_unexpected, order);

        if (unexpected->endpoint == endpoint)
            ofpi_receive_discard(context, unexpected);
    }
}

void ofpi_receive_context_end(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, int error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &context->posted.order) {
        struct ofpi_posted *posted = OFP_CONTAINER_OF(node, struct ofpi_posted, order);

        if (posted->endpoint == endpoint)
            ofpi_receive_fail_posted(context, posted, error, 0);
    }
}

void ofpi_receive_context_drain(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, int error)
{
    struct ofp_list *node, *following;

    ofpi_receive_context_end(context, endpoint, error);
    OFP_LIST_EACH(node, following, &context->in_flight.list) {
        struct ofpi_inflight *inflight = OFP_CONTAINER_OF(node, struct ofpi_inflight, base.node);

        if (inflight->endpoint == endpoint)
            ofpi_receive_complete(&inflight->base, error, 0);
    }
    discard_messages(context, &context->unexpected.order, endpoint);
    discard_messages(context, &context->unexpected.set_aside, endpoint);
}

/*
 * The payload of a waiting message is lost. Those that arrived behind it in the same incarnation leave that: within one
 * number nothing may be missing.
 */
static void mark_gap_behind(struct ofpi_receive_context *context, const struct ofpi_unexpected *lost)
{
    struct ofp_list *order = &context->unexpected.order;

    for (struct ofp_list *node = lost->order.next; node != order; node = node->next) {
        struct ofpi_unexpected *later = OFP_CONTAINER_OF(node, struct ofpi_unexpected, order);

        if (later->incarnation == lost->incarnation && later->endpoint == lost->endpoint)
            later->incarnation = 0;
    }
}

/*
 * A set-aside message belongs to an operation, so it stays and reports the loss when it is claimed. All others are
 * discarded.
 */
static void mark_payloads_lost(struct ofpi_receive_context *context, struct ofpi_peer *peer, int error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &peer->announced) {
        struct ofpi_unexpected *unexpected = OFP_CONTAINER_OF(node, struct ofpi_unexpected, payload.of_peer);

        if (unexpected->set_aside) {
            ofpi_unexpected_mark_lost(unexpected, ofpi_loss_error_choose(unexpected->bound ? OFP_BOUND : 0, error));
            continue;
        }
        if (unexpected->incarnation)
            mark_gap_behind(context, unexpected);
        ofpi_receive_discard(context, unexpected);
    }
}

void ofpi_receive_context_end_directed(struct ofpi_receive_context *context, uint32_t source, int error,
                                       int provider_error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &context->posted.order) {
        struct ofpi_posted *posted = OFP_CONTAINER_OF(node, struct ofpi_posted, order);

        if (ofpi_source_of_posted(posted) == source)
            ofpi_receive_fail_posted(context, posted, error, provider_error);
    }
}

bool ofpi_receive_context_names(const struct ofpi_receive_context *context, uint32_t source)
{
    const struct ofp_list *order = &context->posted.order;

    for (const struct ofp_list *node = order->next; node != order; node = node->next)
        if (ofpi_source_of_posted(OFP_CONTAINER_OF(node, const struct ofpi_posted, order)) == source)
            return true;
    return false;
}

void ofpi_receive_context_end_bound(struct ofpi_receive_context *context, uint32_t source, int error,
                                    int provider_error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &context->posted.order) {
        struct ofpi_posted *posted = OFP_CONTAINER_OF(node, struct ofpi_posted, order);

        if (posted->receiver.op_flags & OFP_BOUND && ofpi_source_of_posted(posted) == source)
            ofpi_receive_fail_posted(context, posted, error, provider_error);
    }
}

/* Whether a receive in flight, or the one for which its message is set aside, is bound to an incarnation. */
static bool is_of_bound_receive(const struct ofpi_inflight *inflight)
{
    return inflight->receiver.op_flags & OFP_BOUND || (inflight->unexpected && inflight->unexpected->bound);
}

/* Whether a stream fills a message that no receive has matched. */
static bool is_filling_waiting_message(const struct ofpi_inflight *inflight)
{
    const struct ofpi_unexpected *unexpected = inflight->unexpected;

    return unexpected && !inflight->matched && !inflight->dropped && !unexpected->set_aside && unexpected->incarnation;
}

void ofpi_receive_context_peer_lost(struct ofpi_receive_context *context, struct ofpi_peer *peer, int error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &peer->receives) {
        struct ofpi_inflight *inflight = OFP_CONTAINER_OF(node, struct ofpi_inflight, of_peer);
        uint64_t flags = is_of_bound_receive(inflight) ? OFP_BOUND : 0;

        if (is_filling_waiting_message(inflight))
            mark_gap_behind(context, inflight->unexpected);
        ofpi_receive_complete(&inflight->base, ofpi_loss_error_choose(flags, error), 0);
    }
    mark_payloads_lost(context, peer, error);
}
