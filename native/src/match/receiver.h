/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver: the owner of a receive operation, and the user's memory for its message.
 *
 * One segment is stored in the receiver itself; several are stored in a block of the context's slab. The receiver
 * retains the regions from ofpi_receiver_init to ofpi_receiver_release. A receiver of a multi-receive buffer retains
 * nothing itself: the buffer does (receive_many.h).
 */
#ifndef OFPI_RECEIVER_H
#define OFPI_RECEIVER_H

#include "base/slab.h"
#include "object/owner.h"
#include "ofipy/provider.h"

/* Internal bits of op_flags: `memory` describes a struct ofpi_segments, or the caller's struct ofp_layout. */
#define OFPI_SEGMENTED (1ull << 61)
#define OFPI_LAID_OUT (1ull << 54)

struct ofpi_segments {
    uint32_t count;
    struct iovec iov[OFP_SEGMENT_LIMIT];
    struct ofp_region *regions[OFP_SEGMENT_LIMIT];
};

/* A multi-receive buffer; receive_many.h. */
struct ofpi_many {
    struct ofp_endpoint *endpoint; /* the endpoint where the buffer was posted */
    struct ofp_region *region;     /* retained; or NULL */
    char *base;                    /* start of the buffer; buffer_offset is relative to it */
    uint64_t least;                /* bytes: with less space the buffer is used up */
    uint64_t under_way;            /* messages with a piece of the buffer that have not completed */
    bool open;                     /* the buffer accepts further messages */
    int error;                     /* positive: the operation was cancelled or failed with this error */
};

struct ofpi_receiver {
    uint64_t op_context;
    uint64_t op_flags;   /* the operation's, and OFPI_SEGMENTED or OFPI_LAID_OUT */
    struct iovec memory; /* the only segment, a struct ofpi_segments, or a layout; iov_len is the length of all */
    union {
        struct ofp_region *region; /* of the only segment, or NULL */
        struct ofpi_many *many;    /* with OFP_MULTI_RECV: the buffer that `memory` is a part of */
    };
};

/* `segments`: slab of struct ofpi_segments. -EINVAL: too many segments; -ENOMEM. */
int ofpi_receiver_init(struct ofpi_receiver *receiver, struct ofpi_slab *segments, const struct ofp_transfer *transfer);
void ofpi_receiver_release(struct ofpi_receiver *receiver, struct ofpi_slab *segments);
/* Copy into the memory at `offset`, as far as there is space. */
void ofpi_receiver_write(const struct ofpi_receiver *receiver, uint64_t offset, const void *data, uint64_t length);
/* The memory as an array, and the regions of its entries. Both are valid until the receiver is moved or released. */
const struct iovec *ofpi_receiver_get_iov(const struct ofpi_receiver *receiver, uint32_t *count);
struct ofp_region *const *ofpi_receiver_get_regions(const struct ofpi_receiver *receiver);

static inline bool ofpi_receiver_is_owned_by(const struct ofpi_receiver *receiver, uint64_t op_context,
                                             uint64_t op_flags)
{
    return ofpi_owner_is_same(receiver->op_context, receiver->op_flags, op_context, op_flags);
}

#endif
