/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/receive_many.h"

#include "base/check.h"
#include "base/reserve.h"
#include "base/slab.h"
#include "match/receive_state.h"
#include "match/receiver.h"
#include "object/region.h"

bool ofpi_many_allocate_piece(struct ofpi_receiver *whole, uint64_t length, struct ofpi_receiver *piece)
{
    struct iovec *space = &whole->memory;
    struct ofpi_many *many = whole->many;
    uint64_t size = length < space->iov_len ? length : space->iov_len;

    OFPI_CHECK(many->open);
    *piece = *whole;
    piece->memory.iov_len = size;
    /* A buffer of no bytes may lie at NULL, and NULL plus zero is undefined. */
    if (size)
        space->iov_base = (char *)space->iov_base + size;
    space->iov_len -= size;
    many->under_way++;
    /* A truncated message used up all the space, even if the minimum is 0. */
    many->open = size == length && space->iov_len >= many->least;
    return many->open;
}

bool ofpi_many_reserve_completion(struct ofpi_receive_context *context, const struct ofpi_receiver *receiver)
{
    return !(receiver->op_flags & OFP_MULTI_RECV) || !context->entries || ofpi_reserve_acquire(context->entries, 1);
}

static void release_reservation(struct ofpi_receive_context *context)
{
    if (context->entries)
        ofpi_reserve_release(context->entries, 1);
}

void ofpi_many_return_piece(struct ofpi_receive_context *context, struct ofpi_receiver *whole,
                            const struct ofpi_receiver *piece)
{
    OFPI_CHECK(whole->many->under_way);
    release_reservation(context);
    whole->memory.iov_base = piece->memory.iov_base;
    whole->memory.iov_len += piece->memory.iov_len;
    whole->many->under_way--;
    whole->many->open = true;
}

/* Release the buffer. `reported`: a message's completion has already reported its end; otherwise write one. */
static void release_buffer(struct ofpi_receive_context *context, const struct ofpi_receiver *receiver, bool reported)
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
    ofpi_slab_free(&context->many, many);
    if (!reported)
        context->complete(endpoint, receiver->op_flags, NULL, &completion);
}

static bool is_buffer_over(const struct ofpi_many *many) { return !many->under_way && !many->open; }

void ofpi_many_end_piece(const struct ofpi_receiver *piece, struct ofpi_receive_result *result)
{
    struct ofpi_many *many = piece->many;

    OFPI_CHECK(many->under_way);
    many->under_way--;
    result->buffer_offset = (uint64_t)((char *)piece->memory.iov_base - many->base);
    if (is_buffer_over(many) && !many->error)
        result->flags |= OFP_COMPLETED_MULTI_RECV;
}

void ofpi_many_release_piece(struct ofpi_receive_context *context, const struct ofpi_receiver *piece)
{
    release_reservation(context);
    if (is_buffer_over(piece->many))
        release_buffer(context, piece, !piece->many->error);
}

void ofpi_many_end(struct ofpi_receive_context *context, const struct ofpi_receiver *whole, int error)
{
    OFPI_CHECK(whole->many->open);
    whole->many->open = false;
    whole->many->error = error;
    if (!whole->many->under_way)
        release_buffer(context, whole, false);
}
