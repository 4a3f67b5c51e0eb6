/* SPDX-License-Identifier: BSD-3-Clause */
/* From an operation record to a checked, resolved transfer. */
#include "operation/resolve.h"

#include <errno.h>

#include "atomic/atomic.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "object/owner.h"
#include "object/region.h"
#include "ofipy/layout.h"
#include "ofipy/ofp.h"

int ofpi_segment_resolve(struct ofpi_domain *domain, uint32_t access, uint32_t region_id, uint64_t offset,
                         uint64_t length, struct iovec *iov, struct ofp_region **region)
{
    struct ofpi_region *found;

    if (region_id == OFP_REGION_PROCESS) {
        iov->iov_base = (void *)(uintptr_t)offset;
        iov->iov_len = length;
        *region = NULL;
        /* Other addresses are not checked. */
        return offset || !length ? 0 : -EFAULT;
    }
    found = ofpi_regions_find(&domain->regions, region_id);
    /* A region that is being closed keeps its id until all peers have left it, but refuses new operations. */
    if (!found || !found->open)
        return -OFP_ENOREGION;
    if (access & ~found->base.access)
        return -EACCES;
    /* This order of tests prevents wrap-around of the subtraction. */
    if (length > found->base.length || offset > found->base.length - length)
        return -ERANGE;
    iov->iov_base = found->base.base + offset;
    iov->iov_len = length;
    *region = &found->base;
    return 0;
}

/* The pieces of a layout are memory of the process: rights and keys belong to regions. */
static __attribute__((noinline)) int resolve_layout(const struct ofp_operation *op, struct ofpi_resolved *resolved)
{
    const struct ofp_layout *layout = (const struct ofp_layout *)(uintptr_t)op->segments;
    int result;

    if (!layout || (layout->part_count && !layout->parts) || (layout->dimension_count && !layout->dimensions))
        return -EFAULT;
    result = ofp_layout_check(layout);
    if (result)
        return result;
    resolved->transfer.iov = (const struct iovec *)(const void *)layout;
    resolved->regions[0] = NULL;
    resolved->transfer.iov_count = OFP_LAYOUT;
    resolved->transfer.length = layout->length;
    return 0;
}

static int resolve_many(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, struct ofpi_resolved *resolved)
{
    const struct ofp_segment *segments = (const struct ofp_segment *)(uintptr_t)op->segments;
    uint32_t access = ofpi_row_of_operation(op)->local_access;
    uint64_t total = 0;

    if (!segments)
        return -EFAULT;
    if (op->segment_count == OFP_LAYOUT)
        return resolve_layout(op, resolved);
    if (op->segment_count > OFP_SEGMENT_LIMIT || op->segment_count > endpoint->info.segment_limit)
        return -E2BIG;
    for (uint32_t i = 0; i < op->segment_count; i++) {
        int result = ofpi_segment_resolve(endpoint->domain, access, segments[i].region, segments[i].offset,
                                          segments[i].length, &resolved->iov[i], &resolved->regions[i]);

        if (result)
            return result;
        /* A sum that wraps around would look like a short message. */
        if (segments[i].length > UINT64_MAX - total)
            return -EMSGSIZE;
        total += segments[i].length;
    }
    resolved->transfer.iov_count = op->segment_count;
    resolved->transfer.length = total;
    return 0;
}

static int resolve_remote(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                          struct ofpi_resolved *resolved)
{
    const struct ofp_remote_segment *segments = (const struct ofp_remote_segment *)(uintptr_t)op->remote_segments;
    uint32_t count = op->remote_segment_count;
    uint64_t total = 0;

    resolved->transfer.remote = resolved->remote;
    if (!count) {
        resolved->remote[0] = (struct ofp_remote_segment){op->remote_offset, resolved->transfer.length, op->remote_key};
        resolved->transfer.remote_count = 1;
        return 0;
    }
    if (!segments)
        return -EFAULT;
    if (count > OFP_SEGMENT_LIMIT || count > endpoint->info.remote_segment_limit)
        return -E2BIG;
    for (uint32_t i = 0; i < count; i++) {
        resolved->remote[i] = segments[i];
        if (segments[i].length > UINT64_MAX - total)
            return -EMSGSIZE;
        total += segments[i].length;
    }
    resolved->transfer.remote_count = count;
    /* Local and remote lengths must agree: a transport may use either sum as the length of the other memory. */
    return total == resolved->transfer.length ? 0 : -EINVAL;
}

/* Every remote segment must consist of whole elements, since each element is updated atomically. */
static int check_elements(const struct ofp_operation *op, const struct ofp_transfer *transfer)
{
    size_t size = ofpi_datatype_get_size(op->datatype);

    for (uint32_t i = 0; i < transfer->remote_count; i++)
        if (transfer->remote[i].length % size)
            return -EINVAL;
    return 0;
}

/* The other operands of an atomic, each as long as the local one. */
static int resolve_atomic(struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                          struct ofpi_resolved *resolved)
{
    struct ofp_transfer *transfer = &resolved->transfer;
    struct iovec memory = {0};
    int result = check_elements(op, transfer);

    if (result)
        return result;
    transfer->result = NULL;
    transfer->compare = NULL;
    transfer->result_region = transfer->compare_region = NULL;
    /* Rights as of RMA: what is fetched lands as by a read, what is compared with leaves as by a write. */
    if (ofpi_operation_has_trait(op, OFP_READS)) {
        result = ofpi_segment_resolve(endpoint->domain, OFP_ACCESS_READ, op->result_region, op->result_offset,
                                      transfer->length, &memory, &transfer->result_region);
        transfer->result = memory.iov_base;
    }
    if (!result && ofpi_operation_has_trait(op, OFP_COMPARES)) {
        result = ofpi_segment_resolve(endpoint->domain, OFP_ACCESS_WRITE, (uint32_t)op->compare_region,
                                      op->compare_offset, transfer->length, &memory, &transfer->compare_region);
        transfer->compare = memory.iov_base;
    }
    return result;
}

/* Whether the endpoint has what flags of the operation ask for: multi-receive buffers, fences, incarnations. */
static bool has_flagged_capabilities(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    if (op->flags & OFP_MULTI_RECV && !(endpoint->info.caps & OFP_CAP_MULTI_RECV))
        return false;
    if (op->flags & OFP_FENCE && !(endpoint->info.caps & OFP_CAP_FENCE))
        return false;
    return !(op->flags & OFP_BOUND) || ofpi_endpoint_has_incarnations(endpoint);
}

static int check_receive(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    uint64_t mode = op->flags & (OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD);

    if (op->segment_count == OFP_LAYOUT && mode)
        return -EINVAL;
    if (op->flags & (OFP_MULTI_RECV | OFP_BOUND)) {
        if (op->flags & OFP_BOUND && op->peer == OFP_PEER_ANY)
            return -EINVAL;
        if (!has_flagged_capabilities(endpoint, op))
            return -EOPNOTSUPP;
        if (op->flags & OFP_MULTI_RECV)
            return mode || op->segment_count > 1 ? -EINVAL : 0;
    }
    switch (mode) {
    case 0:
    case OFP_PEEK:
    case OFP_PEEK | OFP_CLAIM:
    case OFP_PEEK | OFP_DISCARD:
    case OFP_HOLD | OFP_CLAIM:
    case OFP_CLAIM:
    case OFP_CLAIM | OFP_DISCARD:
        return 0;
    default:
        return -EINVAL;
    }
}

/* An operation without a capability is of a group; internal, with an owner that no caller can set; or its code is invalid. */
static int check_internal(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    if (ofpi_operation_has_trait(op, OFP_OF_GROUP))
        return OFPI_IS_OF_GROUP;
    if (!(op->flags & OFPI_OWNED) || ofpi_row_of_operation(op)->channel != OFP_CHANNEL_INTERNAL)
        return -EINVAL;
    return endpoint->base.ops->internal_channel ? 0 : -EOPNOTSUPP;
}

/* An atomic that the device executes. The provider checks whether the device supports it. */
static bool is_of_device(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    return op->flags & OFP_DEVICE_ATOMIC && endpoint->info.caps & OFP_CAP_DEVICE_ATOMIC;
}

static int check_kind(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                      const struct ofp_operation_row *row)
{
    if (!(endpoint->info.caps & row->capability) && !is_of_device(endpoint, op)) {
        int result = row->capability ? -EOPNOTSUPP : check_internal(endpoint, op);

        if (result)
            return result;
    }
    if (row->traits & OFP_RECEIVES)
        return check_receive(endpoint, op);
    if (__builtin_expect(ofpi_endpoint_is_receive_only(endpoint), 0))
        return -EOPNOTSUPP;
    if (op->flags & (OFP_FENCE | OFP_BOUND) && !has_flagged_capabilities(endpoint, op))
        return -EOPNOTSUPP;
    if (row->traits & OFP_ATOMIC_KIND && (!ofpi_atomic_is_valid(op->op, op->atomic_op, op->datatype) ||
                                          (op->flags & OFP_DEVICE_ATOMIC && !is_of_device(endpoint, op))))
        return -EOPNOTSUPP;
    return 0;
}

static uint64_t get_length_limit(const struct ofp_info *info, uint32_t traits)
{
    if (traits & OFP_ATOMIC_KIND)
        return info->max_atomic_size;
    return traits & OFP_REMOTE ? info->max_rma_size : info->max_msg_size;
}

int ofpi_operation_resolve(struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                           struct ofpi_resolved *resolved)
{
    const struct ofp_operation_row *row = ofpi_row_of_operation(op);
    int result = check_kind(endpoint, op, row);

    if (result)
        return result;
    resolved->transfer.op = op;
    resolved->transfer.iov = resolved->iov;
    resolved->transfer.regions = resolved->regions;
    if (op->segment_count == 0) {
        result = ofpi_segment_resolve(endpoint->domain, row->local_access, op->region, op->offset, op->length,
                                      &resolved->iov[0], &resolved->regions[0]);
        resolved->transfer.iov_count = 1;
        resolved->transfer.length = op->length;
    } else {
        result = resolve_many(endpoint, op, resolved);
    }
    if (result)
        return result;
    /* The length of a receive is a buffer size and may exceed max_msg_size. */
    if (row->traits & OFP_RECEIVES)
        return 0;
    resolved->transfer.remote_count = 0;
    if (resolved->transfer.length > get_length_limit(&endpoint->info, row->traits))
        return -EMSGSIZE;
    if (__builtin_expect(!(row->traits & OFP_REMOTE), 1))
        return 0;
    result = resolve_remote(endpoint, op, resolved);
    return result || !(row->traits & OFP_ATOMIC_KIND) ? result : resolve_atomic(endpoint, op, resolved);
}

int ofpi_operation_check(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, struct ofpi_resolved *resolved)
{
    int result = ofpi_operation_resolve(endpoint, op, resolved);

    return result == OFPI_IS_OF_GROUP ? endpoint->domain->upper->group_check(endpoint, op) : result;
}
