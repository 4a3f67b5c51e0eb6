/* SPDX-License-Identifier: BSD-3-Clause */
/* From an operation record to a checked, resolved transfer, and into the endpoint. */
#include <errno.h>

#include "atomic.h"
#include "connection.h"
#include "deferred.h"
#include "hooked.h"
#include "receive_offloaded.h"

int ofpi_segment_resolve(struct ofpi_domain *domain, uint32_t access, uint32_t region_id, uint64_t offset,
                         uint64_t length, struct iovec *iov, struct ofp_region **region)
{
    struct ofpi_region *found;

    if (region_id == OFP_REGION_PROCESS) {
        iov->iov_base = (void *)(uintptr_t)offset;
        iov->iov_len = length;
        *region = NULL;
        return offset || !length ? 0 : -EFAULT;
    }
    found = ofpi_regions_find(&domain->regions, region_id);
    if (!found || !found->open)
        return -OFP_ENOREGION;
    if (access & ~found->base.access)
        return -EACCES;
    if (length > found->base.length || offset > found->base.length - length)
        return -ERANGE;
    iov->iov_base = found->base.base + offset;
    iov->iov_len = length;
    *region = &found->base;
    return 0;
}

static int resolve_many(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, struct ofpi_resolved *resolved)
{
    const struct ofp_segment *segments = (const struct ofp_segment *)(uintptr_t)op->segments;
    uint32_t access = ofpi_operation_row(op)->local_access;
    uint64_t total = 0;

    if (!segments)
        return -EFAULT;
    if (op->segment_count > OFP_SEGMENT_LIMIT || op->segment_count > endpoint->info.segment_limit)
        return -E2BIG;
    for (uint32_t i = 0; i < op->segment_count; i++) {
        int result = ofpi_segment_resolve(endpoint->domain, access, segments[i].region, segments[i].offset,
                                          segments[i].length, &resolved->iov[i], &resolved->regions[i]);

        if (result)
            return result;
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
    /* A transport that trusts one of the two sums would touch memory that the other does not name. */
    return total == resolved->transfer.length ? 0 : -EINVAL;
}

/* Whole elements everywhere at the target: each of them is one step there. */
static int check_elements(const struct ofp_operation *op, const struct ofp_transfer *transfer)
{
    size_t size = ofpi_datatype_size(op->datatype);

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
    if (ofpi_operation_is(op, OFP_READS)) {
        result = ofpi_segment_resolve(endpoint->domain, OFP_ACCESS_READ, op->result_region, op->result_offset,
                                      transfer->length, &memory, &transfer->result_region);
        transfer->result = memory.iov_base;
    }
    if (!result && ofpi_operation_is(op, OFP_COMPARES)) {
        result = ofpi_segment_resolve(endpoint->domain, OFP_ACCESS_WRITE, (uint32_t)op->compare_region,
                                      op->compare_offset, transfer->length, &memory, &transfer->compare_region);
        transfer->compare = memory.iov_base;
    }
    return result;
}

static int check_receive(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    uint64_t mode = op->flags & (OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD);

    if (op->flags & OFP_MULTI_RECV) {
        if (!(endpoint->info.caps & OFP_CAP_MULTI_RECV))
            return -EOPNOTSUPP;
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

/* What needs no capability is the core's own, with an owner that no caller can give it, or no operation at all. */
static int check_internal(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    if (!(op->flags & OFPI_OWNED) || ofpi_operation_row(op)->channel != OFP_CHANNEL_INTERNAL)
        return -EINVAL;
    return endpoint->base.ops->internal_channel ? 0 : -EOPNOTSUPP;
}

static int check_kind(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                      const struct ofp_operation_row *row)
{
    if (!(endpoint->info.caps & row->capability)) {
        int result = row->capability ? -EOPNOTSUPP : check_internal(endpoint, op);

        if (result)
            return result;
    }
    if (row->traits & OFP_RECEIVES)
        return check_receive(endpoint, op);
    if (__builtin_expect(ofpi_endpoint_receives_only(endpoint), 0))
        return -EOPNOTSUPP;
    if (op->flags & OFP_FENCE && !(endpoint->info.caps & OFP_CAP_FENCE))
        return -EOPNOTSUPP;
    if (row->traits & OFP_ATOMIC_KIND && !ofpi_atomic_is_valid(op->op, op->atomic_op, op->datatype))
        return -EOPNOTSUPP;
    return 0;
}

static uint64_t longest(const struct ofp_info *info, uint32_t traits)
{
    if (traits & OFP_ATOMIC_KIND)
        return info->max_atomic_size;
    return traits & OFP_REMOTE ? info->max_rma_size : info->max_msg_size;
}

int ofpi_operation_resolve(struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                           struct ofpi_resolved *resolved)
{
    const struct ofp_operation_row *row = ofpi_operation_row(op);
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
    if (row->traits & OFP_RECEIVES)
        return 0;
    resolved->transfer.remote_count = 0;
    if (resolved->transfer.length > longest(&endpoint->info, row->traits))
        return -EMSGSIZE;
    if (__builtin_expect(!(row->traits & OFP_REMOTE), 1))
        return 0;
    result = resolve_remote(endpoint, op, resolved);
    return result || !(row->traits & OFP_ATOMIC_KIND) ? result : resolve_atomic(endpoint, op, resolved);
}

/* A receive may name a source that has no peer object yet; the transport that matches itself needs one. */
int ofpi_receive_start(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    struct ofpi_peer *peer = NULL;
    bool shared = ofpi_endpoint_receives_only(endpoint);
    int error = 0;

    if (__builtin_expect(shared, 0)) {
        size_t length;

        if (op->peer != OFP_PEER_ANY && !ofpi_av_table_lookup(endpoint->av->table, op->peer, &length))
            return -OFP_EADDRNOTAVAIL;
    } else if (__builtin_expect(endpoint->shared != NULL, 0)) {
        /* Receives are posted to the shared context. */
        return -EOPNOTSUPP;
    } else if (op->peer != OFP_PEER_ANY) {
        peer = ofpi_peer_get(endpoint, op->peer, &error);
        if (!peer)
            return error;
    }
    if (!endpoint->info.offloads_matching)
        error = ofpi_receive_post(endpoint->receive_context, &endpoint->base, transfer);
    else
        error = ofpi_offloaded_post(endpoint, peer ? &peer->base : NULL, transfer);
    /* Messages that came before its end can be received, but no more come. */
    if (peer && error >= 0)
        ofpi_peer_named(endpoint, peer);
    else if (__builtin_expect(shared && op->peer != OFP_PEER_ANY && error >= 0, 0))
        ofpi_peer_named_in_shared(endpoint, op->peer);
    return error;
}

/* Inlined where operations are posted; hooks go the way through the function. */
static inline __attribute__((always_inline)) int start(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    struct ofpi_resolved resolved;
    struct ofpi_peer *peer;
    int error;

    if (__builtin_expect(!endpoint->av, 0))
        return ofpi_connection_post(endpoint, op);
    error = ofpi_operation_resolve(endpoint, op, &resolved);
    if (error)
        return error;
    if (ofpi_operation_is_receive(op))
        return ofpi_receive_start(endpoint, &resolved.transfer);
    peer = ofpi_peer_get(endpoint, op->peer, &error);
    if (!peer)
        return error;
    return ofpi_peer_post(peer, &resolved.transfer);
}

int ofpi_endpoint_start(struct ofpi_endpoint *endpoint, const struct ofp_operation *op) { return start(endpoint, op); }

int ofpi_endpoint_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    if (__builtin_expect(endpoint->closing, 0))
        return -ECANCELED;
    if (__builtin_expect(endpoint->hooks != NULL, 0))
        return ofpi_hooks_post(endpoint, op);
    return start(endpoint, op);
}

void ofpi_endpoint_flush(struct ofpi_endpoint *endpoint)
{
    endpoint->held_back = false;
    if (endpoint->base.ops->flush)
        endpoint->base.ops->flush(&endpoint->base);
}

void ofpi_endpoint_flush_later(struct ofp_endpoint *handle)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;

    if (!ofp_list_linked(&endpoint->flush_node))
        ofp_list_append(&endpoint->domain->to_flush, &endpoint->flush_node);
}

void ofpi_domain_flush(struct ofpi_domain *domain)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&domain->to_flush)))
        ofpi_endpoint_flush(OFP_CONTAINER_OF(node, struct ofpi_endpoint, flush_node));
}

int64_t ofp_post(struct ofp_endpoint *base, const struct ofp_operation *operations, uint64_t count)
{
    struct ofpi_endpoint *handle = (struct ofpi_endpoint *)base, *endpoint;
    uint64_t accepted = 0;
    int result = ofpi_domain_enter(handle->domain);

    if (result)
        return result;
    endpoint = handle->behind;
    while (accepted < count) {
        struct ofp_operation op = operations[accepted];

        if (!ofpi_operation_is_known(&op)) {
            result = -EINVAL;
            break;
        }
        op.flags = ofpi_operation_is_receive(&op) ? ofpi_receive_flags(op.flags, handle->rx_flags)
                                                  : ofpi_send_flags(handle, &op);
        /* What the caller itself announces as not the last is flushed by a later post, or by progress. */
        endpoint->held_back = op.flags & OFP_MORE;
        if (accepted + 1 < count)
            op.flags |= OFP_MORE;
        result = ofpi_endpoint_post(endpoint, &op);
        if (result)
            break;
        accepted++;
    }
    if (count > 1 && !endpoint->held_back)
        ofpi_endpoint_flush(endpoint);
    ofpi_domain_leave(endpoint->domain);
    return accepted ? (int64_t)accepted : result;
}

int ofp_cancel(struct ofp_endpoint *handle, uint64_t context)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result = ofpi_endpoint_enter(endpoint);

    if (result)
        return result;
    endpoint = endpoint->behind;
    result = -ENOENT;
    if (endpoint->receive_context)
        result = ofpi_receive_cancel(endpoint->receive_context, &endpoint->base, context, 0);
    if (result == -ENOENT)
        result = ofpi_peer_cancel(endpoint, context, 0);
    if (result == -ENOENT)
        result = ofpi_works_cancel(endpoint, context);
    ofpi_domain_leave(endpoint->domain);
    return result;
}
