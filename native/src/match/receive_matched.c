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
    /* As the rows of the operations say, which are not at hand. */
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

    context->complete(endpoint, op_flags & ~OFPI_SEGMENTED, &completion);
}

/* Cold, with a result of its own: the compiler keeps the result of any other receive in registers. */
static __attribute__((cold, noinline)) void
finish_piece(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, const struct ofpi_receiver *piece,
             const struct ofp_message *message, struct ofpi_receive_result result)
{
    ofpi_many_end_piece(piece, &result);
    ofpi_receive_report(context, endpoint, piece->op_context, piece->op_flags, message, result);
    ofpi_many_release_piece(context, piece);
}

void ofpi_receive_finish(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                         struct ofpi_receiver *receiver, const struct ofp_message *message,
                         struct ofpi_receive_result result)
{
    if (receiver->op_flags & OFP_MULTI_RECV) {
        finish_piece(context, endpoint, receiver, message, result);
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
    ofpi_receive_finish(context, endpoint, receiver, message, (struct ofpi_receive_result){.error = error});
}

void ofpi_receive_fail(struct ofpi_receive_context *context, struct ofpi_posted *posted, int error, int provider_error)
{
    uint32_t source = ofpi_posted_source(posted);
    struct ofp_message none = {
        .source = source == OFP_PEER_ANY ? OFP_PEER_UNKNOWN : source,
        .channel = ofpi_posted_channel(posted),
        .tag = posted->node.key.tag,
    };

    ofpi_posted_remove(&context->posted, posted);
    if (posted->receiver.op_flags & OFP_MULTI_RECV)
        ofpi_many_end(context, &posted->receiver, error);
    else
        ofpi_receive_finish(context, posted->endpoint, &posted->receiver, &none,
                            (struct ofpi_receive_result){.error = error, .provider_error = provider_error});
    ofpi_posted_give(&context->posted, posted);
}

struct ofpi_posted *ofpi_receive_match_many(struct ofpi_receive_context *context, struct ofpi_posted *posted,
                                            uint32_t channel, uint64_t tag, uint32_t source, uint64_t length)
{
    while (posted && posted->receiver.op_flags & OFP_MULTI_RECV && !ofpi_many_fits(&posted->receiver, length)) {
        ofpi_receive_fail(context, posted, 0, 0);
        posted = ofpi_posted_match(&context->posted, channel, tag, source);
    }
    return posted;
}

struct ofpi_receiver ofpi_receive_use(struct ofpi_receive_context *context, struct ofpi_posted *posted, uint64_t length)
{
    struct ofpi_receiver receiver;

    if (!(posted->receiver.op_flags & OFP_MULTI_RECV))
        receiver = posted->receiver;
    else if (ofpi_many_cut(&posted->receiver, length, &receiver))
        return receiver;
    ofpi_posted_remove(&context->posted, posted);
    ofpi_posted_give(&context->posted, posted);
    return receiver;
}

/* A receive with OFP_HOLD: the message goes on waiting, now for this operation alone. */
static void set_aside(struct ofpi_receive_context *context, struct ofp_endpoint *poster, struct ofpi_unexpected *kept,
                      struct ofpi_receiver *receiver, const struct ofp_message *message)
{
    ofpi_unexpected_set_aside(&context->unexpected, kept, poster, receiver->op_context, receiver->op_flags);
    if (kept->announced)
        ofpi_receive_fetch_soon(context);
    ofpi_receive_finish(context, kept->endpoint, receiver, message,
                        (struct ofpi_receive_result){.flags = OFP_COMPLETED_CLAIM});
}

void ofpi_receive_free(struct ofpi_receive_context *context, struct ofpi_unexpected *kept)
{
    struct ofp_endpoint *endpoint = kept->endpoint;
    struct ofpi_receiver lender;
    struct ofp_message message;

    if (__builtin_expect(!kept->lent, 1)) {
        ofpi_unexpected_free(&context->unexpected, kept);
        return;
    }
    lender = kept->payload.lender;
    message = ofpi_unexpected_message(kept);
    ofpi_unexpected_free(&context->unexpected, kept);
    /* A request that was abandoned, to which nothing was transferred. */
    lender.op_flags |= OFP_PEEK;
    ofpi_receive_finish(context, endpoint, &lender, &message, (struct ofpi_receive_result){.error = ECANCELED});
}

int ofpi_receive_take_kept(struct ofpi_receive_context *context, struct ofp_endpoint *poster,
                           struct ofpi_unexpected *kept, const struct ofpi_receiver *receiver,
                           struct ofpi_posted *posted)
{
    /* A copy: `receiver` may lie in the posted receive, which is given back below. */
    struct ofpi_receiver taken = *receiver;
    struct ofp_message message = ofpi_unexpected_message(kept);
    struct ofp_endpoint *endpoint = kept->endpoint;
    bool hold = taken.op_flags & OFP_HOLD;
    struct ofpi_lent *lent = NULL;

    /* What may fail comes first: nothing behind this does. */
    if (!hold && kept->announced && !kept->error) {
        lent = ofpi_lent_take(&context->lent, context);
        if (!lent)
            return -ENOMEM;
    }
    if (posted) {
        ofpi_posted_remove(&context->posted, posted);
        ofpi_posted_give(&context->posted, posted);
    }
    ofpi_unexpected_detach(&context->unexpected, kept);
    if (hold) {
        set_aside(context, poster, kept, &taken, &message);
        return 0;
    }
    if (ofpi_unexpected_is_filling(kept)) {
        kept->filling->receiver = taken;
        kept->filling->matched = true;
        return 0;
    }
    if (kept->error)
        ofpi_receive_finish(context, endpoint, &taken, &message, (struct ofpi_receive_result){.error = kept->error});
    else if (!lent)
        ofpi_receive_deliver(context, endpoint, &taken, &message, ofpi_unexpected_payload(kept));
    ofpi_receive_free(context, kept);
    /* The provider may call back into the context from within: nothing is touched afterwards. */
    if (lent)
        ofpi_lent_start(lent, endpoint, &message, &taken);
    return 0;
}

void ofpi_receive_hold(struct ofpi_receive_context *context, const struct ofp_message *message,
                       struct ofpi_unexpected *kept, struct ofpi_posted *posted)
{
    ofpi_posted_remove(&context->posted, posted);
    set_aside(context, posted->endpoint, kept, &posted->receiver, message);
    ofpi_posted_give(&context->posted, posted);
}
