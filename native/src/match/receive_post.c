/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting receives with all their flags, cancelling, and returning messages that were set aside. */
#include "match/receive_post.h"

#include <errno.h>

#include "match/lent.h"
#include "match/posted.h"
#include "match/receive_claim.h"
#include "match/receive_many.h"
#include "match/receive_matched.h"
#include "match/receive_post_many.h"
#include "match/receiver.h"
#include "match/selector.h"
#include "match/unexpected.h"
#include "object/owner.h"
#include "object/peer.h"

#define ACTION_FLAGS (OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD | OFP_MULTI_RECV)

/* `unexpected` matches the receive and is delivered to it, or set aside for it; NULL: the receive stays posted. */
static inline int start_plain_receive(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                                      const struct ofp_transfer *transfer, const struct ofpi_selector *selector,
                                      struct ofpi_unexpected *unexpected)
{
    struct ofpi_receiver receiver;
    int result = ofpi_receiver_init(&receiver, &context->segments, transfer);

    if (result)
        return result;
    if (unexpected)
        result = ofpi_receive_deliver_unexpected(context, endpoint, unexpected, &receiver, NULL);
    else
        result = ofpi_posted_add(&context->posted, endpoint, selector, &receiver);
    if (result)
        ofpi_receiver_release(&receiver, &context->segments);
    return result;
}

/* Match an unexpected message, or stay posted. With OFP_HOLD a match sets the message aside. */
static int post_plain_receive(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                              const struct ofp_transfer *transfer)
{
    struct ofpi_selector selector = ofpi_selector_of(transfer->op);

    return start_plain_receive(context, endpoint, transfer, &selector,
                               ofpi_unexpected_find(&context->unexpected, &selector));
}

/*
 * Discard a detached message. `inflight` drops the payload of an announced message, which notifies the sender. NULL:
 * there is no payload to drop.
 */
static void discard_detached(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                             struct ofpi_inflight *inflight)
{
    struct ofp_message message = ofpi_message_of_unexpected(unexpected);
    struct ofp_endpoint *endpoint = unexpected->endpoint;

    /* The stream still writes into the message: the message is freed when the stream ends. */
    if (ofpi_unexpected_is_filling(unexpected)) {
        unexpected->filling->dropped = true;
        return;
    }
    ofpi_receive_free_unexpected(context, unexpected);
    if (inflight)
        ofpi_inflight_start(inflight, endpoint, &message, NULL);
}

/* Complete the operation with the length, tag, data and source of an unexpected message, then discard the message. */
static int complete_and_discard(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                                const struct ofp_operation *op, struct ofpi_unexpected *unexpected)
{
    struct ofp_message message = ofpi_message_of_unexpected(unexpected);
    struct ofpi_inflight *inflight = NULL;

    /* Allocate first: a message that was removed from its index could not return. */
    if (unexpected->announced && !unexpected->error) {
        inflight = ofpi_inflight_allocate(&context->in_flight, context);
        if (!inflight)
            return -ENOMEM;
    }
    ofpi_unexpected_detach(&context->unexpected, unexpected);
    ofpi_receive_report(context, endpoint, op->context, op->flags, &message, (struct ofpi_receive_result){0});
    discard_detached(context, unexpected, inflight);
    return 0;
}

static int peek_message(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                        const struct ofp_operation *op)
{
    struct ofpi_selector selector = ofpi_selector_of(op);
    struct ofpi_unexpected *unexpected = op->flags & OFP_BOUND
                                             ? ofpi_unexpected_find_bound(&context->unexpected, &selector, op->reserved)
                                             : ofpi_unexpected_find(&context->unexpected, &selector);
    struct ofpi_receive_result result = {0};
    struct ofp_message message = {.source = OFP_PEER_UNKNOWN, .channel = selector.channel, .tag = selector.tag};

    if (unexpected && op->flags & OFP_DISCARD)
        return complete_and_discard(context, endpoint, op, unexpected);
    if (!unexpected) {
        result.error = ENOMSG;
    } else {
        message = ofpi_message_of_unexpected(unexpected);
        if (op->flags & OFP_CLAIM) {
            result.flags = OFP_COMPLETED_CLAIM;
            ofpi_unexpected_detach(&context->unexpected, unexpected);
            ofpi_unexpected_set_aside(&context->unexpected, unexpected, endpoint, op->context, op->flags);
        }
    }
    ofpi_receive_report(context, endpoint, op->context, op->flags, &message, result);
    return 0;
}

static int claim_set_aside_message(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                                   const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    struct ofpi_unexpected *unexpected =
        ofpi_unexpected_find_set_aside(&context->unexpected, endpoint, op->context, op->flags);
    struct ofpi_receiver receiver;
    int result;

    if (!unexpected)
        return -ENOENT;
    if (op->flags & OFP_DISCARD)
        return complete_and_discard(context, endpoint, op, unexpected);
    result = ofpi_receiver_init(&receiver, &context->segments, transfer);
    if (result)
        return result;
    if (op->flags & OFPI_REQUEST)
        result = ofpi_receive_claim(context, endpoint, unexpected, &receiver);
    else
        result = ofpi_receive_deliver_unexpected(context, endpoint, unexpected, &receiver, NULL);
    if (result)
        ofpi_receiver_release(&receiver, &context->segments);
    return result;
}

/*
 * A receive in one incarnation of its source: it matches a message that arrived in it, stays posted while the peer is in
 * it, and otherwise ends.
 */
static int post_bound_receive(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                              const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    struct ofpi_peer *peer = ofpi_peer_find_at((struct ofpi_endpoint *)endpoint, op->peer);
    struct ofpi_selector selector = ofpi_selector_of(op);
    struct ofp_message none = {.source = op->peer, .channel = (uint8_t)selector.channel, .tag = selector.tag};
    struct ofpi_unexpected *unexpected;
    bool is_present = peer && ofpi_peer_is_in(peer, op->reserved);
    int result;

    switch (op->flags & ACTION_FLAGS) {
    case 0:
    case OFP_HOLD | OFP_CLAIM:
        unexpected = ofpi_unexpected_find_bound(&context->unexpected, &selector, op->reserved);
        if (unexpected || is_present) {
            result = start_plain_receive(context, endpoint, transfer, &selector, unexpected);
            break;
        }
        ofpi_receive_report(context, endpoint, op->context, op->flags, &none,
                            (struct ofpi_receive_result){.error = OFP_EPEERLOST});
        return 0;
    case OFP_MULTI_RECV:
        result = ofpi_receive_post_many(context, endpoint, transfer, is_present);
        break;
    case OFP_PEEK:
    case OFP_PEEK | OFP_CLAIM:
    case OFP_PEEK | OFP_DISCARD:
        return peek_message(context, endpoint, op);
    default:
        return -EINVAL;
    }
    if (is_present)
        peer->bound = true;
    return result;
}

int ofpi_receive_post(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                      const struct ofp_transfer *transfer)
{
    switch (transfer->op->flags & (ACTION_FLAGS | OFP_BOUND)) {
    case 0:
    case OFP_HOLD | OFP_CLAIM:
        return post_plain_receive(context, endpoint, transfer);
    case OFP_MULTI_RECV:
        return ofpi_receive_post_many(context, endpoint, transfer, true);
    case OFP_PEEK:
    case OFP_PEEK | OFP_CLAIM:
    case OFP_PEEK | OFP_DISCARD:
        return peek_message(context, endpoint, transfer->op);
    case OFP_CLAIM:
    case OFP_CLAIM | OFP_DISCARD:
        return claim_set_aside_message(context, endpoint, transfer);
    default:
        return transfer->op->flags & OFP_BOUND ? post_bound_receive(context, endpoint, transfer) : -EINVAL;
    }
}

int ofpi_receive_cancel(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                        uint64_t op_flags)
{
    struct ofp_list *order = &context->posted.order;

    /* ofp_cancel specifies that the newest receive with the context is cancelled. */
    for (struct ofp_list *node = order->previous; node != order; node = node->previous) {
        struct ofpi_posted *posted = OFP_CONTAINER_OF(node, struct ofpi_posted, order);

        if (posted->endpoint == endpoint && ofpi_receiver_is_owned_by(&posted->receiver, op_context, op_flags)) {
            ofpi_receive_fail_posted(context, posted, ECANCELED, 0);
            return 0;
        }
    }
    return -ENOENT;
}

/* Deliver a set-aside message to a posted receive that matches it. -ENOMEM: nothing has changed. */
static int deliver_to_posted(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                             struct ofpi_posted *posted)
{
    struct ofpi_receiver piece;
    bool open;
    int result;

    if (!(posted->receiver.op_flags & OFP_MULTI_RECV))
        return ofpi_receive_deliver_unexpected(context, posted->endpoint, unexpected, &posted->receiver, posted);
    if (!ofpi_many_reserve_completion(context, &posted->receiver))
        return -ENOMEM;
    open = ofpi_many_allocate_piece(&posted->receiver, unexpected->length, &piece);
    result = ofpi_receive_deliver_unexpected(context, posted->endpoint, unexpected, &piece, open ? NULL : posted);
    if (result)
        ofpi_many_return_piece(context, &posted->receiver, &piece);
    return result;
}

/* Whether the message arrived in another incarnation of its source than the present one. */
static bool is_of_ended_incarnation(const struct ofpi_unexpected *unexpected)
{
    const struct ofpi_peer *peer =
        ofpi_peer_find_at((const struct ofpi_endpoint *)unexpected->endpoint, unexpected->source);

    return peer && peer->bound && !ofpi_peer_is_in(peer, unexpected->incarnation);
}

/* The oldest posted receive for a returned message that it has space for, or NULL. */
static struct ofpi_posted *match_returned_message(struct ofpi_receive_context *context,
                                                  const struct ofpi_unexpected *unexpected)
{
    uint32_t channel = unexpected->channel, source = unexpected->source;
    struct ofpi_posted *posted;

    if (!is_of_ended_incarnation(unexpected))
        return ofpi_receive_match(context, channel, unexpected->tag, source, unexpected->length);
    while ((posted = ofpi_posted_match_unbound(&context->posted, channel, unexpected->tag, source)) &&
           posted->receiver.op_flags & OFP_MULTI_RECV && !ofpi_many_has_space(&posted->receiver, unexpected->length))
        ofpi_receive_fail_posted(context, posted, 0, 0);
    return posted;
}

int ofpi_receive_return_message(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                                struct ofpi_unexpected **waiting)
{
    struct ofpi_posted *posted;
    int result;

    /* The payload is lost, so no other receive could get it. */
    if (unexpected->error) {
        ofpi_unexpected_detach(&context->unexpected, unexpected);
        ofpi_receive_free_unexpected(context, unexpected);
        return 0;
    }
    /* Receives posted while the message was set aside could not match it: match again. */
    posted = match_returned_message(context, unexpected);
    if (posted)
        return deliver_to_posted(context, unexpected, posted);
    result = ofpi_unexpected_return(&context->unexpected, unexpected);
    if (!result && waiting)
        *waiting = unexpected;
    return result;
}

int ofpi_receive_unclaim(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                         struct ofpi_unexpected **waiting)
{
    struct ofpi_unexpected *unexpected =
        ofpi_unexpected_find_set_aside(&context->unexpected, endpoint, op_context, OFPI_REQUEST);

    if (unexpected)
        return ofpi_receive_return_claimed(context, unexpected, op_context, waiting);
    /*
     * The context of a request is its address. A plain context with the same value is tried only if no request matches.
     */
    unexpected = ofpi_unexpected_find_set_aside(&context->unexpected, endpoint, op_context, 0);
    return unexpected ? ofpi_receive_return_message(context, unexpected, waiting) : -ENOENT;
}
