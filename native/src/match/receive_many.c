/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/receive_many.h"

#include <errno.h>

#include "base/reserve.h"
#include "base/slab.h"
#include "match/posted.h"
#include "match/receive_matched.h"
#include "match/selector.h"
#include "match/unexpected.h"
#include "object/region.h"

bool ofpi_many_cut(struct ofpi_receiver *whole, uint64_t length, struct ofpi_receiver *piece)
{
    struct iovec *room = &whole->memory;
    struct ofpi_many *many = whole->many;
    uint64_t size = length < room->iov_len ? length : room->iov_len;

    *piece = *whole;
    piece->memory.iov_len = size;
    /* A buffer of no bytes may lie at NULL, and NULL plus zero is undefined. */
    if (size)
        room->iov_base = (char *)room->iov_base + size;
    room->iov_len -= size;
    many->under_way++;
    /* A message that was cut used up all the room, whatever the minimum. */
    many->open = size == length && room->iov_len >= many->least;
    return many->open;
}

bool ofpi_many_promise(struct ofpi_receive_context *context, const struct ofpi_receiver *receiver)
{
    return !(receiver->op_flags & OFP_MULTI_RECV) || !context->entries || ofpi_reserve_promise(context->entries, 1);
}

static void release_promise(struct ofpi_receive_context *context)
{
    if (context->entries)
        ofpi_reserve_release(context->entries, 1);
}

void ofpi_many_mend(struct ofpi_receive_context *context, struct ofpi_receiver *whole,
                    const struct ofpi_receiver *piece)
{
    release_promise(context);
    whole->memory.iov_base = piece->memory.iov_base;
    whole->memory.iov_len += piece->memory.iov_len;
    whole->many->under_way--;
    whole->many->open = true;
}

/* Its memory is the user's again; an error, or what no message's completion could tell, is told now. */
static void release(struct ofpi_receive_context *context, const struct ofpi_receiver *receiver, bool told)
{
    struct ofpi_many *many = receiver->many;
    struct ofp_endpoint *endpoint = many->endpoint;
    struct ofp_completion completion = {
        .context = receiver->op_context,
        .flags = OFP_COMPLETED_MULTI_RECV,
        .source = OFP_PEER_UNKNOWN,
        .error = many->error,
    };

    ofpi_region_release(many->region);
    ofpi_slab_give(&context->many, many);
    if (!told)
        context->complete(endpoint, receiver->op_flags, &completion);
}

void ofpi_many_finish(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                      const struct ofpi_receiver *piece, const struct ofp_message *message,
                      struct ofpi_receive_result result)
{
    struct ofpi_many *many = piece->many;
    bool last = --many->under_way == 0 && !many->open;
    bool told = last && !many->error;

    result.buffer_offset = (uint64_t)((char *)piece->memory.iov_base - many->base);
    if (told)
        result.flags |= OFP_COMPLETED_MULTI_RECV;
    ofpi_receive_report(context, endpoint, piece->op_context, piece->op_flags, message, result);
    release_promise(context);
    if (last)
        release(context, piece, told);
}

void ofpi_many_end(struct ofpi_receive_context *context, const struct ofpi_receiver *whole, int error)
{
    whole->many->open = false;
    whole->many->error = error;
    if (!whole->many->under_way)
        release(context, whole, false);
}

/* ------------------------------------------------------------------------------------------------------- posting */

static int open_many(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                     const struct ofp_transfer *transfer, struct ofpi_receiver *whole)
{
    struct ofpi_many *many = ofpi_slab_take(&context->many);

    if (!many)
        return -ENOMEM;
    *whole = (struct ofpi_receiver){.op_context = transfer->op->context, .op_flags = transfer->op->flags};
    *many = (struct ofpi_many){
        .endpoint = endpoint,
        /* A buffer without room is used up even where the minimum is nothing. */
        .least = context->min_multi_recv ? context->min_multi_recv : 1,
        .open = true,
    };
    if (transfer->iov_count) {
        whole->memory = transfer->iov[0];
        many->region = transfer->regions[0];
    }
    many->base = whole->memory.iov_base;
    ofpi_region_hold(many->region);
    whole->many = many;
    return 0;
}

/*
 * Give it the kept messages that match, oldest first. It is not posted meanwhile: what arrives while the provider moves
 * one of them is kept too, and has its turn behind those that came before. *used: it may be gone, or has taken something.
 */
static int take_kept_messages(struct ofpi_receive_context *context, const struct ofpi_selector *selector,
                              struct ofpi_receiver *whole, bool *open, bool *used)
{
    struct ofpi_unexpected *kept;
    struct ofpi_receiver piece;
    int result;

    while (*open && (kept = ofpi_unexpected_find(&context->unexpected, selector))) {
        if (!ofpi_many_fits(whole, kept->length)) {
            *open = false;
            ofpi_many_end(context, whole, 0);
            return 0;
        }
        if (!ofpi_many_promise(context, whole))
            return -ENOMEM;
        *open = ofpi_many_cut(whole, kept->length, &piece);
        result = ofpi_receive_take_kept(context, whole->many->endpoint, kept, &piece, NULL);
        if (result) {
            ofpi_many_mend(context, whole, &piece);
            *open = true;
            return result;
        }
        *used = true;
    }
    return 0;
}

int ofpi_receive_post_many(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                           const struct ofp_transfer *transfer)
{
    struct ofpi_selector selector = ofpi_selector_of(transfer->op);
    struct ofpi_receiver whole;
    bool open = true, used = false;
    int result;

    if (transfer->iov_count > 1)
        return -EINVAL;
    result = open_many(context, endpoint, transfer, &whole);
    if (result)
        return result;
    result = take_kept_messages(context, &selector, &whole, &open, &used);
    if (!open)
        return 0;
    if (!result)
        result = ofpi_posted_add(&context->posted, endpoint, &selector, &whole);
    if (!result)
        return 0;
    if (used) {
        /* Messages are in it already, so refusing it is no longer possible. */
        ofpi_many_end(context, &whole, -result);
        return 0;
    }
    ofpi_region_release(whole.many->region);
    ofpi_slab_give(&context->many, whole.many);
    return result;
}
