/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing, arrivals, and the receives under way. */
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

static int open_parts(struct ofpi_receive_context *context, const struct ofpi_receive_context_attr *attr)
{
    uint64_t seed[2];
    int result;

    /* Secret, for peers choose tags and are not to choose collisions. */
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
    ofpi_lent_open(&context->lent);
    ofpi_slab_open(&context->segments, sizeof(struct ofpi_segments));
    ofpi_slab_open(&context->many, sizeof(struct ofpi_many));
    context->posted.slab.backing = context->lent.pool.backing = context->many.backing = attr->entries;
    context->entries = attr->entries;
    context->min_multi_recv = attr->min_multi_recv;
    context->complete = attr->complete;
    ofpi_receive_fetch_open(context, attr->domain, attr->start_timer);
    return 0;
}

int ofpi_receive_context_open(const struct ofpi_receive_context_attr *attr, struct ofpi_receive_context **context)
{
    struct ofpi_receive_context *opened = calloc(1, sizeof(*opened));
    int result = opened ? open_parts(opened, attr) : -ENOMEM;

    if (result) {
        free(opened);
        return result;
    }
    *context = opened;
    return 0;
}

void ofpi_receive_context_close(struct ofpi_receive_context *context)
{
    ofpi_receive_fetch_close(context);
    ofpi_posted_close(&context->posted);
    ofpi_unexpected_close(&context->unexpected);
    ofpi_lent_close(&context->lent);
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

bool ofpi_announce_only(const struct ofpi_receive_context *context) { return context->unexpected.announce_only; }

/* No receive: the message waits. */
static bool keep(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, const struct ofp_message *message,
                 const void *payload, bool announced)
{
    struct ofpi_unexpected *kept =
        ofpi_unexpected_keep(&context->unexpected, endpoint, message, payload, announced, false);

    if (!kept)
        return false;
    if (ofpi_unexpected_wait(&context->unexpected, kept)) {
        ofpi_unexpected_free(&context->unexpected, kept);
        return false;
    }
    return true;
}

/* The receive has OFP_HOLD: the message is kept and set aside for it at once. */
static bool hold(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, const struct ofp_message *message,
                 const void *payload, bool announced, struct ofpi_posted *posted)
{
    struct ofpi_unexpected *kept =
        ofpi_unexpected_keep(&context->unexpected, endpoint, message, payload, announced, true);

    if (!kept)
        return false;
    ofpi_receive_hold(context, message, kept, posted);
    return true;
}

int ofpi_message_arrived(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                         const struct ofp_message *message, const void *payload)
{
    struct ofpi_posted *posted =
        ofpi_receive_match(context, message->channel, message->tag, message->source, message->length);
    struct ofpi_receiver piece;

    if (!posted)
        return keep(context, endpoint, message, payload, false) ? 0 : -EAGAIN;
    if (posted->receiver.op_flags & OFP_HOLD)
        return hold(context, endpoint, message, payload, false, posted) ? 0 : -EAGAIN;
    if (__builtin_expect(posted->receiver.op_flags & OFP_MULTI_RECV, 0)) {
        if (!ofpi_many_promise(context, &posted->receiver))
            return -EAGAIN;
        piece = ofpi_receive_use(context, posted, message->length);
        ofpi_receive_deliver(context, endpoint, &piece, message, payload);
        return 0;
    }
    ofpi_posted_remove(&context->posted, posted);
    ofpi_receive_deliver(context, endpoint, &posted->receiver, message, payload);
    ofpi_posted_give(&context->posted, posted);
    return 0;
}

int ofpi_message_announced(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                           const struct ofp_message *message)
{
    struct ofpi_posted *posted =
        ofpi_receive_match(context, message->channel, message->tag, message->source, message->length);
    struct ofpi_receiver receiver;
    struct ofpi_lent *lent;

    if (!posted)
        return keep(context, endpoint, message, NULL, true) ? 0 : -ENOBUFS;
    if (posted->receiver.op_flags & OFP_HOLD)
        return hold(context, endpoint, message, NULL, true, posted) ? 0 : -ENOBUFS;
    /* What may fail comes first: a receive that has been used could not be posted again in its place. */
    lent = ofpi_lent_take(&context->lent, context);
    if (!lent)
        return -ENOBUFS;
    if (!ofpi_many_promise(context, &posted->receiver)) {
        ofpi_lent_give(&context->lent, lent);
        return -ENOBUFS;
    }
    receiver = ofpi_receive_use(context, posted, message->length);
    ofpi_lent_start(lent, endpoint, message, &receiver);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- receives under way */

void ofpi_receive_write(struct ofp_receive *receive, uint64_t offset, const void *data, uint64_t length)
{
    struct ofpi_lent *lent = (struct ofpi_lent *)receive;

    if (__builtin_expect(lent->kept != NULL, 0)) {
        /* Only up to the length that was announced, whatever the peer sends. */
        if (offset < lent->memory.iov_len)
            ofp_memory_copy((char *)lent->memory.iov_base + offset, data,
                            length < lent->memory.iov_len - offset ? length : lent->memory.iov_len - offset);
    } else if (!lent->dropped) {
        ofpi_receiver_write(&lent->receiver, offset, data, length);
    }
}

struct ofp_receive *ofpi_receive_find(struct ofp_peer *peer, uint64_t id)
{
    struct ofpi_receive_context *context = ((struct ofpi_endpoint *)peer->endpoint)->receive_context;
    struct ofpi_lent *lent = ofpi_pool_find(&context->lent.pool, id);

    /* The number came from the peer: it may be any, and also name what is another peer's. */
    return lent && lent->peer == peer ? &lent->base : NULL;
}

void ofpi_receive_complete(struct ofp_receive *receive, int error, int provider_error)
{
    struct ofpi_lent *lent = (struct ofpi_lent *)receive;
    struct ofpi_receive_context *context = lent->context;

    if (__builtin_expect(lent->kept != NULL, 0)) {
        ofpi_stream_complete(context, lent, error, provider_error);
    } else if (!lent->dropped) {
        if (!error && receive->message.length > lent->receiver.memory.iov_len)
            error = OFP_ETRUNC;
        ofpi_receive_finish(context, lent->endpoint, &lent->receiver, &receive->message,
                            (struct ofpi_receive_result){.error = error, .provider_error = provider_error});
    }
    ofpi_lent_give(&context->lent, lent);
}

/* ------------------------------------------------------------------------------------ end of an endpoint or a peer */

static void drain_messages(struct ofpi_receive_context *context, struct ofp_list *messages,
                           const struct ofp_endpoint *endpoint)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, messages) {
        struct ofpi_unexpected *kept = OFP_CONTAINER_OF(node, struct ofpi_unexpected, order);

        if (kept->endpoint == endpoint)
            ofpi_receive_drop(context, kept);
    }
}

void ofpi_receive_context_end(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, int error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &context->posted.order) {
        struct ofpi_posted *posted = OFP_CONTAINER_OF(node, struct ofpi_posted, order);

        if (posted->endpoint == endpoint)
            ofpi_receive_fail(context, posted, error, 0);
    }
}

void ofpi_receive_context_drain(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, int error)
{
    struct ofp_list *node, *following;

    ofpi_receive_context_end(context, endpoint, error);
    OFP_LIST_EACH(node, following, &context->lent.list) {
        struct ofpi_lent *lent = OFP_CONTAINER_OF(node, struct ofpi_lent, base.node);

        if (lent->endpoint == endpoint)
            ofpi_receive_complete(&lent->base, error, 0);
    }
    drain_messages(context, &context->unexpected.order, endpoint);
    drain_messages(context, &context->unexpected.set_aside, endpoint);
}

/* A claimed message is owed to somebody: it stays, and says what became of it when it is received. */
static void lose_payloads(struct ofpi_receive_context *context, struct ofpi_peer *peer, uint32_t way, int error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &peer->announced) {
        struct ofpi_unexpected *kept = OFP_CONTAINER_OF(node, struct ofpi_unexpected, payload.of_peer);

        if (way != OFPI_EVERY_WAY && kept->way != way)
            continue;
        if (kept->set_aside)
            ofpi_unexpected_lose(kept, error);
        else
            ofpi_receive_drop(context, kept);
    }
}

void ofpi_receive_context_end_directed(struct ofpi_receive_context *context, uint32_t source, int error,
                                       int provider_error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &context->posted.order) {
        struct ofpi_posted *posted = OFP_CONTAINER_OF(node, struct ofpi_posted, order);

        if (ofpi_posted_source(posted) == source)
            ofpi_receive_fail(context, posted, error, provider_error);
    }
}

void ofpi_receive_context_peer_lost(struct ofpi_receive_context *context, struct ofpi_peer *peer, uint32_t way,
                                    int error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &peer->receives) {
        struct ofp_receive *receive = &OFP_CONTAINER_OF(node, struct ofpi_lent, of_peer)->base;

        if (way == OFPI_EVERY_WAY || receive->message.spare[OFP_SPARE_WAY] == way)
            ofpi_receive_complete(receive, error, 0);
    }
    lose_payloads(context, peer, way, error);
}
