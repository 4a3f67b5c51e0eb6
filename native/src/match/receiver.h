/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver: whose message it is to be, and the user's memory for it.
 *
 * One segment lies inside; more lie in a block of the context's slab. The regions are held from capture to release.
 * A part of a multi-receive buffer holds nothing itself; receive_many.h.
 */
#ifndef OFPI_RECEIVER_H
#define OFPI_RECEIVER_H

#include "base/slab.h"
#include "object/owner.h"
#include "ofipy/provider.h"

/* Internal bit of op_flags: `memory` describes a struct ofpi_segments. */
#define OFPI_SEGMENTED (1ull << 61)

struct ofpi_segments {
    uint32_t count;
    struct iovec iov[OFP_SEGMENT_LIMIT];
    struct ofp_region *regions[OFP_SEGMENT_LIMIT];
};

/* A multi-receive buffer; receive_many.h. */
struct ofpi_many {
    struct ofp_endpoint *endpoint; /* where it was posted */
    struct ofp_region *region;     /* held; or NULL */
    char *base;                    /* start of the buffer; buffer_offset is relative to it */
    uint64_t least;
    uint64_t under_way; /* messages with a piece of the buffer that have not completed */
    bool open;          /* the buffer accepts further messages */
    int error;          /* positive: why it was ended from outside */
};

struct ofpi_receiver {
    uint64_t op_context;
    uint64_t op_flags;   /* the operation's, and OFPI_SEGMENTED */
    struct iovec memory; /* the one segment; iov_len is the room in all of them */
    union {
        struct ofp_region *region; /* of the one segment, or NULL */
        struct ofpi_many *many;    /* with OFP_MULTI_RECV: the buffer that `memory` is a part of */
    };
};

/* `segments`: slab of struct ofpi_segments. -EINVAL: too many segments; -ENOMEM. */
int ofpi_receiver_init(struct ofpi_receiver *receiver, struct ofpi_slab *segments, const struct ofp_transfer *transfer);
void ofpi_receiver_release(struct ofpi_receiver *receiver, struct ofpi_slab *segments);
/* Copy into the memory at `offset`, as far as there is room. */
void ofpi_receiver_write(const struct ofpi_receiver *receiver, uint64_t offset, const void *data, uint64_t length);
/* The memory as an array, which lives as long as the receiver stays where it is, and the regions of its entries. */
const struct iovec *ofpi_receiver_get_iov(const struct ofpi_receiver *receiver, uint32_t *count);
struct ofp_region *const *ofpi_receiver_get_regions(const struct ofpi_receiver *receiver);

static inline bool ofpi_receiver_is_owned_by(const struct ofpi_receiver *receiver, uint64_t op_context,
                                             uint64_t op_flags)
{
    return ofpi_owner_is_same(receiver->op_context, receiver->op_flags, op_context, op_flags);
}

#endif
