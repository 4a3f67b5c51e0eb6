/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/receive_matched.h"

#include <errno.h>

#include "match/lent.h"
#include "match/posted.h"
#include "match/receive_fetch.h"
#include "match/receive_many.h"
#include "match/receiver.h"
#include "match/unexpected.h"

void ofpi_receive_report(const struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                         uint64_t op_flags, const struct ofp_message *message, struct ofpi_receive_result result)
{
    /* The flags of ofp_operation_rows, by channel: a message has no operation by which to find a row. */
    static const uint64_t completed[] = {
        [OFP_CHANNEL_MESSAGE] = OFP_COMPLETED_RECV | OFP_COMPLETED_MSG,
        [OFP_CHANNEL_TAGGED] = OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED,
        [OFP_CHANNEL_INTERNAL] = 0,
    };
    struct ofp_completion completion = {
        .context = op_context,
        .flags = completed[message->channel] | (message->has_data ? OFP_COMPLETED_REMOTE_CQ_DATA : 0) | result.flags,
        .length = result.error && result.error != OFP_ETRUNC ? 0 : message->length,
        .buffer_offset = result.buffer_offset,
        .data = message->has_data ? message->data : 0,
        .tag = message->channel != OFP_CHANNEL_MESSAGE ? message->tag : 0,
        .source = message->source,
        .error = result.error,
        .provider_error = result.provider_error,
    };

    context->complete(endpoint, op_flags & ~(OFPI_SEGMENTED | OFPI_LAID_OUT), message, &completion);
}

/*
 * Cold and not inlined: this function takes the address of its own copy of the result, so that the compiler can leave
 * the result of other receives in registers.
 */
static __attribute__((cold, noinline)) void
end_buffer_piece(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, const struct ofpi_receiver *piece,
                 const struct ofp_message *message, struct ofpi_receive_result result)
{
    ofpi_many_end_piece(piece, &result);
    ofpi_receive_report(context, endpoint, piece->op_context, piece->op_flags, message, result);
    ofpi_many_release_piece(context, piece);
}

void ofpi_receive_end(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                      struct ofpi_receiver *receiver, const struct ofp_message *message,
                      struct ofpi_receive_result result)
{
    if (receiver->op_flags & OFP_MULTI_RECV) {
        end_buffer_piece(context, endpoint, receiver, message, result);
        return;
    }
    ofpi_receiver_release(receiver, &context->segments);
    ofpi_receive_report(context, endpoint, receiver->op_context, receiver->op_flags, message, result);
}

void ofpi_receive_deliver(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                          struct ofpi_receiver *receiver, const struct ofp_message *message, const void *payload)
{
    int error = message->length > receiver->memory.iov_len ? OFP_ETRUNC : 0;

    ofpi_receiver_write(receiver, 0, payload, message->length);
    ofpi_receive_end(context, endpoint, receiver, message, (struct ofpi_receive_result){.error = error});
}

void ofpi_receive_fail_posted(struct ofpi_receive_context *context, struct ofpi_posted *posted, int error,
                              int provider_error)
{
    uint32_t source = ofpi_source_of_posted(posted);
    struct ofp_message none = {
        .source = source == OFP_PEER_ANY ? OFP_PEER_UNKNOWN : source,
        .channel = ofpi_channel_of_posted(posted),
        .tag = posted->node.key.tag,
    };

    ofpi_posted_remove(&context->posted, posted);
    if (posted->receiver.op_flags & OFP_MULTI_RECV)
        ofpi_many_end(context, &posted->receiver, error);
    else
        ofpi_receive_end(context, posted->endpoint, &posted->receiver, &none,
                         (struct ofpi_receive_result){.error = error, .provider_error = provider_error});
    ofpi_posted_free(&context->posted, posted);
}

struct ofpi_posted *ofpi_receive_match_many(struct ofpi_receive_context *context, struct ofpi_posted *posted,
                                            uint32_t channel, uint64_t tag, uint32_t source, uint64_t length)
{
    while (posted && posted->receiver.op_flags & OFP_MULTI_RECV && !ofpi_many_has_space(&posted->receiver, length)) {
        ofpi_receive_fail_posted(context, posted, 0, 0);
        posted = ofpi_posted_match(&context->posted, channel, tag, source);
    }
    return posted;
}

struct ofpi_receiver ofpi_receive_pop_receiver(struct ofpi_receive_context *context, struct ofpi_posted *posted,
                                               uint64_t length)
{
    struct ofpi_receiver receiver;

    if (!(posted->receiver.op_flags & OFP_MULTI_RECV))
        receiver = posted->receiver;
    else if (ofpi_many_allocate_piece(&posted->receiver, length, &receiver))
        return receiver;
    ofpi_posted_remove(&context->posted, posted);
    ofpi_posted_free(&context->posted, posted);
    return receiver;
}

/* Set the message aside for a receive with OFP_HOLD, and complete the receive. */
static void set_aside_for_receive(struct ofpi_receive_context *context, struct ofp_endpoint *poster,
                                  struct ofpi_unexpected *unexpected, struct ofpi_receiver *receiver,
                                  const struct ofp_message *message)
{
    unexpected->bound = receiver->op_flags & OFP_BOUND;
    ofpi_unexpected_set_aside(&context->unexpected, unexpected, poster, receiver->op_context, receiver->op_flags);
    if (unexpected->announced)
        ofpi_receive_pull_schedule(context);
    ofpi_receive_end(
        context, unexpected->endpoint, receiver, message,
        (struct ofpi_receive_result){.flags = OFP_COMPLETED_CLAIM, .buffer_offset = unexpected->incarnation});
}

void ofpi_receive_free_unexpected(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected)
{
    struct ofp_endpoint *endpoint = unexpected->endpoint;
    struct ofpi_receiver borrowed_from;
    struct ofp_message message;

    if (__builtin_expect(!unexpected->borrowed, 1)) {
        ofpi_unexpected_free(&context->unexpected, unexpected);
        return;
    }
    borrowed_from = unexpected->payload.borrowed_from;
    message = ofpi_message_of_unexpected(unexpected);
    ofpi_unexpected_free(&context->unexpected, unexpected);
    /* The request was abandoned and received nothing. OFP_PEEK: do not count its completion. */
    borrowed_from.op_flags |= OFP_PEEK;
    ofpi_receive_end(context, endpoint, &borrowed_from, &message, (struct ofpi_receive_result){.error = ECANCELED});
}

int ofpi_receive_deliver_unexpected(struct ofpi_receive_context *context, struct ofp_endpoint *poster,
                                    struct ofpi_unexpected *unexpected, const struct ofpi_receiver *receiver,
                                    struct ofpi_posted *posted)
{
    /* Copy the receiver: it may be a member of the posted receive that is freed below. */
    struct ofpi_receiver receiver_copy = *receiver;
    struct ofp_message message = ofpi_message_of_unexpected(unexpected);
    struct ofp_endpoint *endpoint = unexpected->endpoint;
    bool sets_aside = receiver_copy.op_flags & OFP_HOLD;
    struct ofpi_inflight *inflight = NULL;

    /* Allocate first: nothing below can fail. */
    if (!sets_aside && unexpected->announced && !unexpected->error) {
        inflight = ofpi_inflight_allocate(&context->in_flight, context);
        if (!inflight)
            return -ENOMEM;
    }
    if (posted) {
        ofpi_posted_remove(&context->posted, posted);
        ofpi_posted_free(&context->posted, posted);
    }
    ofpi_unexpected_detach(&context->unexpected, unexpected);
    if (sets_aside) {
        set_aside_for_receive(context, poster, unexpected, &receiver_copy, &message);
        return 0;
    }
    if (ofpi_unexpected_is_filling(unexpected)) {
        unexpected->filling->receiver = receiver_copy;
        unexpected->filling->matched = true;
        return 0;
    }
    if (unexpected->error)
        ofpi_receive_end(context, endpoint, &receiver_copy, &message,
                         (struct ofpi_receive_result){.error = unexpected->error});
    else if (!inflight)
        ofpi_receive_deliver(context, endpoint, &receiver_copy, &message, ofpi_payload_of_unexpected(unexpected));
    ofpi_receive_free_unexpected(context, unexpected);
    /* The provider may call back into the context from this call: do not touch anything afterwards. */
    if (inflight)
        ofpi_inflight_start(inflight, endpoint, &message, &receiver_copy);
    return 0;
}

void ofpi_receive_set_aside(struct ofpi_receive_context *context, const struct ofp_message *message,
                            struct ofpi_unexpected *unexpected, struct ofpi_posted *posted)
{
    ofpi_posted_remove(&context->posted, posted);
    set_aside_for_receive(context, posted->endpoint, unexpected, &posted->receiver, message);
    ofpi_posted_free(&context->posted, posted);
}
