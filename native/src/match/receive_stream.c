/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages whose payload follows their header in a stream. If a posted receive matches, the stream fills the posted
 * memory. Otherwise an unexpected message is stored at once, with memory for its full length and in its place in the
 * order, and the stream fills it while it waits. A receive that matches it meanwhile becomes the receiver of the
 * receive in flight, and completes when the message is complete.
 */
#include "match/receive_stream.h"

#include <errno.h>

#include "base/check.h"
#include "match/lent.h"
#include "match/receive_claim.h"
#include "match/receive_many.h"
#include "match/receive_matched.h"
#include "match/unexpected.h"

static struct ofpi_unexpected *store_filling_message(struct ofpi_receive_context *context,
                                                     struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                                     enum ofp_room bound, struct ofpi_posted *posted)
{
    struct ofpi_unexpected *unexpected =
        ofpi_unexpected_reserve(&context->unexpected, endpoint, message, bound, posted != NULL);

    if (!unexpected)
        return NULL;
    if (posted) {
        ofpi_receive_set_aside(context, message, unexpected, posted);
    } else if (ofpi_unexpected_insert(&context->unexpected, unexpected) != 0) {
        ofpi_unexpected_free(&context->unexpected, unexpected);
        return NULL;
    }
    return unexpected;
}

static bool start_unexpected(struct ofpi_receive_context *context, struct ofpi_inflight *inflight,
                             struct ofp_endpoint *endpoint, const struct ofp_message *message, enum ofp_room bound,
                             struct ofpi_posted *posted)
{
    struct ofpi_unexpected *unexpected = store_filling_message(context, endpoint, message, bound, posted);

    if (!unexpected)
        return false;
    ofpi_inflight_bind_unexpected(inflight, unexpected, endpoint, message);
    return true;
}

int ofpi_message_begun(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                       const struct ofp_message *message, enum ofp_room bound, struct ofp_receive **receive)
{
    struct ofpi_posted *posted =
        ofpi_receive_match(context, message->channel, message->tag, message->source, message->length);
    struct ofpi_inflight *inflight = ofpi_inflight_allocate(&context->in_flight, context);
    struct ofpi_receiver receiver;

    /* Check the allocation before the posted receive is removed: it could not return to its place in the order. */
    if (!inflight)
        return -ENOBUFS;
    if (posted && !(posted->receiver.op_flags & OFP_HOLD)) {
        if (!ofpi_many_reserve_completion(context, &posted->receiver)) {
            ofpi_inflight_free(&context->in_flight, inflight);
            return -ENOBUFS;
        }
        receiver = ofpi_receive_pop_receiver(context, posted, message->length);
        ofpi_inflight_set_receiver(inflight, endpoint, message, &receiver);
    } else if (!start_unexpected(context, inflight, endpoint, message, bound, posted)) {
        ofpi_inflight_free(&context->in_flight, inflight);
        return -ENOBUFS;
    }
    *receive = &inflight->base;
    return 0;
}

/*
 * The stream ends before a receive matched its message. Without an error the message is complete. With an error the
 * message is discarded, or, if it is set aside, stores the error for its claim.
 */
static void end_unmatched_stream(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected, int error)
{
    unexpected->filling = NULL;
    if (!error)
        return;
    if (unexpected->set_aside) {
        OFPI_CHECK(error <= INT16_MAX);
        unexpected->error = (int16_t)error;
        return;
    }
    ofpi_unexpected_detach(&context->unexpected, unexpected);
    ofpi_receive_free_unexpected(context, unexpected);
}

void ofpi_stream_complete(struct ofpi_receive_context *context, struct ofpi_inflight *inflight, int error,
                          int provider_error)
{
    struct ofpi_unexpected *unexpected = inflight->unexpected;

    if (!inflight->matched && !inflight->dropped) {
        end_unmatched_stream(context, unexpected, error);
        return;
    }
    if (unexpected->set_aside) {
        ofpi_receive_end_claim(context, inflight, error, provider_error);
        return;
    }
    if (!inflight->dropped && error)
        ofpi_receive_end(context, inflight->endpoint, &inflight->receiver, &inflight->base.message,
                         (struct ofpi_receive_result){.error = error, .provider_error = provider_error});
    else if (!inflight->dropped)
        ofpi_receive_deliver(context, inflight->endpoint, &inflight->receiver, &inflight->base.message,
                             ofpi_payload_of_unexpected(unexpected));
    ofpi_receive_free_unexpected(context, unexpected);
}
