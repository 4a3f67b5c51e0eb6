/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/receive_claim.h"

#include <errno.h>

#include "match/lent.h"
#include "match/receive_fetch.h"
#include "match/receive_post.h"
#include "match/receiver.h"
#include "match/unexpected.h"

/* Whether the memory of the message is this claim's. */
static bool claim_lends_memory(const struct ofpi_unexpected *kept, uint64_t op_context)
{
    return kept->lent && kept->payload.lender.op_context == op_context;
}

int ofpi_receive_claim(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                       struct ofpi_unexpected *kept, const struct ofpi_receiver *receiver)
{
    struct ofpi_receiver taken = *receiver;
    struct ofp_message message;

    if (kept->error || kept->length > receiver->memory.iov_len || receiver->op_flags & OFPI_SEGMENTED)
        return ofpi_receive_take_kept(context, endpoint, kept, receiver, NULL);
    if (kept->announced)
        return ofpi_receive_fetch(context, kept, receiver);
    if (ofpi_unexpected_is_filling(kept)) {
        kept->filling->receiver = taken;
        kept->filling->matched = true;
        return 0;
    }
    message = ofpi_unexpected_message(kept);
    ofpi_receive_deliver(context, kept->endpoint, &taken, &message, ofpi_unexpected_payload(kept));
    return 0;
}

void ofpi_receive_end_claim(struct ofpi_receive_context *context, struct ofpi_lent *lent, int error, int provider_error)
{
    struct ofpi_unexpected *kept = lent->kept;
    struct ofpi_receiver *receiver = &lent->receiver;
    struct ofp_message *message = &lent->base.message;
    bool in_place = claim_lends_memory(kept, receiver->op_context);

    kept->filling = NULL;
    lent->matched = false;
    if (error) {
        ofpi_unexpected_detach(&context->unexpected, kept);
        /* The request that lent the memory gets the error. */
        if (in_place)
            ofpi_unexpected_free(&context->unexpected, kept);
        else
            ofpi_receive_free(context, kept);
        ofpi_receive_finish(context, lent->endpoint, receiver, message,
                            (struct ofpi_receive_result){.error = error, .provider_error = provider_error});
    } else if (in_place) {
        ofpi_receive_report(context, lent->endpoint, receiver->op_context, receiver->op_flags, message,
                            (struct ofpi_receive_result){0});
    } else {
        ofpi_receive_deliver(context, lent->endpoint, receiver, message, ofpi_unexpected_payload(kept));
    }
}

void ofpi_receive_drop(struct ofpi_receive_context *context, struct ofpi_unexpected *kept)
{
    /* The claim of the request that holds it has ended, and told so. */
    bool is_received = kept->set_aside && claim_lends_memory(kept, kept->first.key.tag);
    struct ofpi_receiver lender;

    ofpi_unexpected_detach(&context->unexpected, kept);
    if (!is_received) {
        ofpi_receive_free(context, kept);
        return;
    }
    lender = kept->payload.lender;
    ofpi_unexpected_free(&context->unexpected, kept);
    ofpi_receiver_release(&lender, &context->segments);
}

void ofpi_receive_accept(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context)
{
    struct ofpi_unexpected *kept =
        ofpi_unexpected_find_set_aside(&context->unexpected, endpoint, op_context, OFPI_REQUEST);

    if (kept)
        ofpi_receive_drop(context, kept);
}

int ofpi_receive_give_back(struct ofpi_receive_context *context, struct ofpi_unexpected *kept, uint64_t op_context,
                           struct ofpi_unexpected **waiting)
{
    struct ofpi_lent *lent = ofpi_unexpected_is_filling(kept) && kept->filling->matched ? kept->filling : NULL;
    struct ofpi_receiver receiver = {0};
    bool is_lent = claim_lends_memory(kept, op_context);
    int result;

    if (lent) {
        receiver = lent->receiver;
        lent->matched = false;
    }
    result = ofpi_receive_return(context, kept, waiting);
    if (result) {
        if (lent)
            lent->matched = true;
        return result;
    }
    /* The claim's own memory is not used: release it. */
    if (lent && !is_lent)
        ofpi_receiver_release(&receiver, &context->segments);
    return is_lent;
}
