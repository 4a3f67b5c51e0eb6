/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/receiver.h"

#include <errno.h>

#include "base/slab.h"
#include "object/region.h"
#include "ofipy/iov.h"

static int copy_segments(struct ofpi_receiver *receiver, struct ofpi_slab *slab, const struct ofp_transfer *transfer)
{
    struct ofpi_segments *segments;

    if (transfer->iov_count == OFP_LAYOUT) {
        receiver->memory = (struct iovec){(void *)(uintptr_t)transfer->iov, transfer->length};
        receiver->region = NULL;
        receiver->op_flags |= OFPI_LAID_OUT;
        return 0;
    }
    if (transfer->iov_count > OFP_SEGMENT_LIMIT)
        return -EINVAL;
    segments = ofpi_slab_allocate(slab);
    if (!segments)
        return -ENOMEM;
    segments->count = transfer->iov_count;
    for (uint32_t i = 0; i < transfer->iov_count; i++) {
        segments->iov[i] = transfer->iov[i];
        segments->regions[i] = transfer->regions[i];
        ofpi_region_retain(transfer->regions[i]);
    }
    receiver->memory = (struct iovec){segments, transfer->length};
    receiver->region = NULL;
    receiver->op_flags |= OFPI_SEGMENTED;
    return 0;
}

int ofpi_receiver_init(struct ofpi_receiver *receiver, struct ofpi_slab *segments, const struct ofp_transfer *transfer)
{
    receiver->op_context = transfer->op->context;
    receiver->op_flags = transfer->op->flags & ~(OFPI_SEGMENTED | OFPI_LAID_OUT);
    if (transfer->iov_count > 1)
        return copy_segments(receiver, segments, transfer);
    if (transfer->iov_count == 0) {
        receiver->memory = (struct iovec){NULL, 0};
        receiver->region = NULL;
        return 0;
    }
    receiver->memory = transfer->iov[0];
    receiver->region = transfer->regions[0];
    ofpi_region_retain(receiver->region);
    return 0;
}

void ofpi_receiver_release(struct ofpi_receiver *receiver, struct ofpi_slab *slab)
{
    struct ofpi_segments *segments = receiver->memory.iov_base;

    if (!(receiver->op_flags & OFPI_SEGMENTED)) {
        ofpi_region_release(receiver->region);
        return;
    }
    for (uint32_t i = 0; i < segments->count; i++)
        ofpi_region_release(segments->regions[i]);
    ofpi_slab_free(slab, segments);
}

void ofpi_receiver_write(const struct ofpi_receiver *receiver, uint64_t offset, const void *data, uint64_t length)
{
    const struct ofpi_segments *segments = receiver->memory.iov_base;
    uint64_t space = receiver->memory.iov_len;

    if (offset >= space)
        return;
    if (length > space - offset)
        length = space - offset;
    if (receiver->op_flags & OFPI_SEGMENTED)
        ofp_iov_scatter(segments->iov, segments->count, offset, data, length);
    else if (receiver->op_flags & OFPI_LAID_OUT)
        ofp_layout_scatter(receiver->memory.iov_base, offset, data, length);
    else
        ofp_memory_copy((char *)receiver->memory.iov_base + offset, data, length);
}

const struct iovec *ofpi_receiver_get_iov(const struct ofpi_receiver *receiver, uint32_t *count)
{
    const struct ofpi_segments *segments = receiver->memory.iov_base;

    if (receiver->op_flags & OFPI_LAID_OUT) {
        *count = OFP_LAYOUT;
        return receiver->memory.iov_base;
    }
    if (!(receiver->op_flags & OFPI_SEGMENTED)) {
        *count = 1;
        return &receiver->memory;
    }
    *count = segments->count;
    return segments->iov;
}

struct ofp_region *const *ofpi_receiver_get_regions(const struct ofpi_receiver *receiver)
{
    const struct ofpi_segments *segments = receiver->memory.iov_base;

    if (receiver->op_flags & OFPI_SEGMENTED)
        return segments->regions;
    return receiver->op_flags & OFP_MULTI_RECV ? &receiver->many->region : &receiver->region;
}
