/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/receive_post_many.h"

#include <errno.h>

#include "base/slab.h"
#include "match/posted.h"
#include "match/receive_many.h"
#include "match/receive_matched.h"
#include "match/receive_state.h"
#include "match/receiver.h"
#include "match/selector.h"
#include "match/unexpected.h"
#include "object/region.h"

static int open_buffer(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                       const struct ofp_transfer *transfer, struct ofpi_receiver *whole)
{
    struct ofpi_many *many = ofpi_slab_allocate(&context->many);

    if (!many)
        return -ENOMEM;
    *whole = (struct ofpi_receiver){.op_context = transfer->op->context, .op_flags = transfer->op->flags};
    *many = (struct ofpi_many){
        .endpoint = endpoint,
        /* A buffer without space is used up even if the minimum is 0. */
        .least = context->min_multi_recv ? context->min_multi_recv : 1,
        .open = true,
    };
    if (transfer->iov_count) {
        whole->memory = transfer->iov[0];
        many->region = transfer->regions[0];
    }
    many->base = whole->memory.iov_base;
    ofpi_region_retain(many->region);
    whole->many = many;
    return 0;
}

static struct ofpi_unexpected *find_next_message(struct ofpi_receive_context *context,
                                                 const struct ofpi_selector *selector, const struct ofp_operation *op)
{
    return op->flags & OFP_BOUND ? ofpi_unexpected_find_bound(&context->unexpected, selector, op->reserved)
                                 : ofpi_unexpected_find(&context->unexpected, selector);
}

/*
 * Deliver the unexpected messages that match to the buffer, oldest first. The buffer is not posted yet: a message that
 * arrives during this call is stored as an unexpected one too, so the order of arrival is preserved. *open: the buffer
 * is still open; if not, it may be freed. *used: the buffer has received a message.
 */
static int receive_unexpected_messages(struct ofpi_receive_context *context, const struct ofp_operation *op,
                                       const struct ofpi_selector *selector, struct ofpi_receiver *whole, bool *open,
                                       bool *used)
{
    struct ofpi_unexpected *unexpected;
    struct ofpi_receiver piece;
    int result;

    while (*open && (unexpected = find_next_message(context, selector, op))) {
        if (!ofpi_many_has_space(whole, unexpected->length)) {
            *open = false;
            ofpi_many_end(context, whole, 0);
            return 0;
        }
        if (!ofpi_many_reserve_completion(context, whole))
            return -ENOMEM;
        *open = ofpi_many_allocate_piece(whole, unexpected->length, &piece);
        result = ofpi_receive_deliver_unexpected(context, whole->many->endpoint, unexpected, &piece, NULL);
        if (result) {
            ofpi_many_return_piece(context, whole, &piece);
            *open = true;
            return result;
        }
        *used = true;
    }
    return 0;
}

int ofpi_receive_post_many(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                           const struct ofp_transfer *transfer, bool stays)
{
    struct ofpi_selector selector = ofpi_selector_of(transfer->op);
    struct ofpi_receiver whole;
    bool open = true, used = false;
    int result;

    if (transfer->iov_count > 1)
        return -EINVAL;
    result = open_buffer(context, endpoint, transfer, &whole);
    if (result)
        return result;
    result = receive_unexpected_messages(context, transfer->op, &selector, &whole, &open, &used);
    if (!open)
        return 0;
    if (!result && !stays) {
        ofpi_many_end(context, &whole, OFP_EPEERLOST);
        return 0;
    }
    if (!result)
        result = ofpi_posted_add(&context->posted, endpoint, &selector, &whole);
    if (!result)
        return 0;
    if (used) {
        /* The buffer has received messages, so the post cannot return an error: report it in a completion. */
        ofpi_many_end(context, &whole, -result);
        return 0;
    }
    ofpi_region_release(whole.many->region);
    ofpi_slab_free(&context->many, whole.many);
    return result;
}
