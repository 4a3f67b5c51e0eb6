/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages whose payload follows their beginning in a stream. One that is expected goes straight into the posted memory. Any
 * other is kept at once, at its full length and in its place in the order, and fills while it waits: whoever matches it
 * meanwhile becomes the receiver of the lent receive, and is served when it is whole.
 */
#include "match/receive_stream.h"

#include <errno.h>

#include "match/lent.h"
#include "match/receive_claim.h"
#include "match/receive_many.h"
#include "match/receive_matched.h"
#include "match/unexpected.h"

static struct ofpi_unexpected *keep_place(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                                          const struct ofp_message *message, enum ofp_room room,
                                          struct ofpi_posted *holder)
{
    struct ofpi_unexpected *kept =
        ofpi_unexpected_keep_place(&context->unexpected, endpoint, message, room, holder != NULL);

    if (!kept)
        return NULL;
    if (holder) {
        ofpi_receive_hold(context, message, kept, holder);
    } else if (ofpi_unexpected_wait(&context->unexpected, kept) != 0) {
        ofpi_unexpected_free(&context->unexpected, kept);
        return NULL;
    }
    return kept;
}

static bool begin_kept(struct ofpi_receive_context *context, struct ofpi_lent *lent, struct ofp_endpoint *endpoint,
                       const struct ofp_message *message, enum ofp_room room, struct ofpi_posted *holder)
{
    struct ofpi_unexpected *kept = keep_place(context, endpoint, message, room, holder);

    if (!kept)
        return false;
    ofpi_lent_fill(lent, kept, endpoint, message);
    return true;
}

int ofpi_message_begin(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                       const struct ofp_message *message, enum ofp_room room, struct ofp_receive **receive)
{
    struct ofpi_posted *posted =
        ofpi_receive_match(context, message->channel, message->tag, message->source, message->length);
    struct ofpi_lent *lent = ofpi_lent_take(&context->lent, context);
    struct ofpi_receiver receiver;

    /* What may fail comes first, before a posted receive is used. */
    if (!lent)
        return -ENOBUFS;
    if (posted && !(posted->receiver.op_flags & OFP_HOLD)) {
        if (!ofpi_many_promise(context, &posted->receiver)) {
            ofpi_lent_give(&context->lent, lent);
            return -ENOBUFS;
        }
        receiver = ofpi_receive_use(context, posted, message->length);
        ofpi_lent_set(lent, endpoint, message, &receiver);
    } else if (!begin_kept(context, lent, endpoint, message, room, posted)) {
        ofpi_lent_give(&context->lent, lent);
        return -ENOBUFS;
    }
    *receive = &lent->base;
    return 0;
}

/* Nobody has taken it: it is whole from now on, or it goes, unless it was claimed and so is owed to somebody. */
static void end_unmatched(struct ofpi_receive_context *context, struct ofpi_unexpected *kept, int error)
{
    kept->filling = NULL;
    if (!error)
        return;
    if (kept->set_aside) {
        kept->error = error;
        return;
    }
    ofpi_unexpected_detach(&context->unexpected, kept);
    ofpi_receive_free(context, kept);
}

void ofpi_stream_complete(struct ofpi_receive_context *context, struct ofpi_lent *lent, int error, int provider_error)
{
    struct ofpi_unexpected *kept = lent->kept;

    if (!lent->matched && !lent->dropped) {
        end_unmatched(context, kept, error);
        return;
    }
    if (kept->set_aside) {
        ofpi_receive_end_claim(context, lent, error, provider_error);
        return;
    }
    if (!lent->dropped && error)
        ofpi_receive_finish(context, lent->endpoint, &lent->receiver, &lent->base.message,
                            (struct ofpi_receive_result){.error = error, .provider_error = provider_error});
    else if (!lent->dropped)
        ofpi_receive_deliver(context, lent->endpoint, &lent->receiver, &lent->base.message,
                             ofpi_unexpected_payload(kept));
    ofpi_receive_free(context, kept);
}
