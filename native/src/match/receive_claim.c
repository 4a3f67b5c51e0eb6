/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/receive_claim.h"

#include <errno.h>

#include "match/lent.h"
#include "match/receive_fetch.h"
#include "match/receive_post.h"
#include "match/receiver.h"
#include "match/unexpected.h"

/* Whether the message borrows the memory of the claim with this context. */
static bool is_memory_of_claim(const struct ofpi_unexpected *unexpected, uint64_t op_context)
{
    return unexpected->borrowed && unexpected->payload.borrowed_from.op_context == op_context;
}

int ofpi_receive_claim(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                       struct ofpi_unexpected *unexpected, const struct ofpi_receiver *receiver)
{
    struct ofpi_receiver receiver_copy = *receiver;
    struct ofp_message message;

    if (unexpected->error || unexpected->length > receiver->memory.iov_len ||
        receiver->op_flags & (OFPI_SEGMENTED | OFPI_LAID_OUT))
        return ofpi_receive_deliver_unexpected(context, endpoint, unexpected, receiver, NULL);
    if (unexpected->announced)
        return ofpi_receive_pull(context, unexpected, receiver);
    if (ofpi_unexpected_is_filling(unexpected)) {
        unexpected->filling->receiver = receiver_copy;
        unexpected->filling->matched = true;
        return 0;
    }
    message = ofpi_message_of_unexpected(unexpected);
    ofpi_receive_deliver(context, unexpected->endpoint, &receiver_copy, &message,
                         ofpi_payload_of_unexpected(unexpected));
    return 0;
}

void ofpi_receive_end_claim(struct ofpi_receive_context *context, struct ofpi_inflight *inflight, int error,
                            int provider_error)
{
    struct ofpi_unexpected *unexpected = inflight->unexpected;
    struct ofpi_receiver *receiver = &inflight->receiver;
    struct ofp_message *message = &inflight->base.message;
    bool in_place = is_memory_of_claim(unexpected, receiver->op_context);

    unexpected->filling = NULL;
    inflight->matched = false;
    if (error) {
        ofpi_unexpected_detach(&context->unexpected, unexpected);
        /* ofpi_receive_end below reports the error to the request whose memory the message borrows. */
        if (in_place)
            ofpi_unexpected_free(&context->unexpected, unexpected);
        else
            ofpi_receive_free_unexpected(context, unexpected);
        ofpi_receive_end(context, inflight->endpoint, receiver, message,
                         (struct ofpi_receive_result){.error = error, .provider_error = provider_error});
    } else if (in_place) {
        ofpi_receive_report(context, inflight->endpoint, receiver->op_context, receiver->op_flags, message,
                            (struct ofpi_receive_result){0});
    } else {
        ofpi_receive_deliver(context, inflight->endpoint, receiver, message, ofpi_payload_of_unexpected(unexpected));
    }
}

void ofpi_receive_discard(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected)
{
    /* True: the message borrows its memory from the request for which it is set aside, and that claim has completed. */
    bool is_received = unexpected->set_aside && is_memory_of_claim(unexpected, unexpected->first.key.tag);
    struct ofpi_receiver borrowed_from;

    ofpi_unexpected_detach(&context->unexpected, unexpected);
    if (!is_received) {
        ofpi_receive_free_unexpected(context, unexpected);
        return;
    }
    borrowed_from = unexpected->payload.borrowed_from;
    ofpi_unexpected_free(&context->unexpected, unexpected);
    ofpi_receiver_release(&borrowed_from, &context->segments);
}

void ofpi_receive_accept(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context)
{
    struct ofpi_unexpected *unexpected =
        ofpi_unexpected_find_set_aside(&context->unexpected, endpoint, op_context, OFPI_REQUEST);

    if (unexpected)
        ofpi_receive_discard(context, unexpected);
}

int ofpi_receive_return_claimed(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                                uint64_t op_context, struct ofpi_unexpected **waiting)
{
    struct ofpi_inflight *inflight =
        ofpi_unexpected_is_filling(unexpected) && unexpected->filling->matched ? unexpected->filling : NULL;
    struct ofpi_receiver receiver = {0};
    bool is_borrowed = is_memory_of_claim(unexpected, op_context);
    int result;

    if (inflight) {
        receiver = inflight->receiver;
        inflight->matched = false;
    }
    result = ofpi_receive_return_message(context, unexpected, waiting);
    if (result) {
        if (inflight)
            inflight->matched = true;
        return result;
    }
    /* The message does not borrow the claim's memory: release it. */
    if (inflight && !is_borrowed)
        ofpi_receiver_release(&receiver, &context->segments);
    return is_borrowed;
}
