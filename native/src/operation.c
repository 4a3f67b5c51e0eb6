/* SPDX-License-Identifier: BSD-3-Clause */
/* From an operation record to a checked, resolved transfer, and into the endpoint. */
#include <errno.h>

#include "domain.h"

static const uint64_t receive_flags =
    OFP_COMPLETION | OFP_MORE | OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD | OFP_MULTI_RECV | OFPI_REQUEST;
static const uint64_t send_flags = OFP_COMPLETION | OFP_MORE | OFP_INJECT | OFP_REMOTE_CQ_DATA | OFP_FENCE |
                                   OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE | OFPI_REQUEST;

static int resolve_segment(struct ofpi_domain *domain, uint32_t region_id, uint64_t offset, uint64_t length,
                           struct iovec *iov, struct ofp_region **region)
{
    struct ofpi_region *found;

    if (region_id == OFP_REGION_PROCESS) {
        iov->iov_base = (void *)(uintptr_t)offset;
        iov->iov_len = length;
        *region = NULL;
        return offset || !length ? 0 : -EFAULT;
    }
    found = ofpi_regions_find(&domain->regions, region_id);
    if (!found)
        return -OFP_ENOKEY;
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
    uint64_t total = 0;

    if (!segments)
        return -EFAULT;
    if (op->segment_count > OFP_SEGMENT_LIMIT || op->segment_count > endpoint->base.info.segment_limit)
        return -E2BIG;
    for (uint32_t i = 0; i < op->segment_count; i++) {
        int result = resolve_segment(endpoint->domain, segments[i].region, segments[i].offset, segments[i].length,
                                     &resolved->iov[i], &resolved->regions[i]);

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

static int check_receive(const struct ofp_operation *op)
{
    uint64_t mode = op->flags & (OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD);

    if (op->flags & ~receive_flags)
        return -EINVAL;
    if (op->flags & OFP_MULTI_RECV)
        return -EOPNOTSUPP;
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

static int check_kind(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    static const uint64_t needed[] = {
        [OFP_SEND] = OFP_CAP_MSG,
        [OFP_RECV] = OFP_CAP_MSG,
        [OFP_TSEND] = OFP_CAP_TAGGED,
        [OFP_TRECV] = OFP_CAP_TAGGED,
        [OFP_READ] = OFP_CAP_RMA,
        [OFP_WRITE] = OFP_CAP_RMA,
        [OFP_ATOMIC] = OFP_CAP_ATOMIC,
        [OFP_FETCH_ATOMIC] = OFP_CAP_ATOMIC,
        [OFP_COMPARE_ATOMIC] = OFP_CAP_ATOMIC,
    };

    if (op->op == 0 || op->op >= sizeof(needed) / sizeof(needed[0]))
        return -EINVAL;
    if (!(endpoint->base.info.caps & needed[op->op]))
        return -EOPNOTSUPP;
    if (ofpi_operation_is_receive(op))
        return check_receive(op);
    if (op->flags & OFP_FENCE && !(endpoint->base.info.caps & OFP_CAP_FENCE))
        return -EOPNOTSUPP;
    return op->flags & ~send_flags ? -EINVAL : 0;
}

int ofpi_operation_resolve(struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                           struct ofpi_resolved *resolved)
{
    int result = check_kind(endpoint, op);

    if (result)
        return result;
    resolved->transfer.op = op;
    resolved->transfer.iov = resolved->iov;
    resolved->transfer.regions = resolved->regions;
    if (op->segment_count == 0) {
        result = resolve_segment(endpoint->domain, op->region, op->offset, op->length, &resolved->iov[0],
                                 &resolved->regions[0]);
        resolved->transfer.iov_count = 1;
        resolved->transfer.length = op->length;
    } else {
        result = resolve_many(endpoint, op, resolved);
    }
    if (result)
        return result;
    if (ofpi_operation_is_receive(op))
        return 0;
    if (resolved->transfer.length > endpoint->base.info.max_msg_size)
        return -EMSGSIZE;
    if (op->flags & OFP_INJECT && resolved->transfer.length > endpoint->base.info.inject_size)
        return -EMSGSIZE;
    return 0;
}

/* A receive may name a source that has no peer object yet; the transport that matches itself needs one. */
static int post_receive(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    struct ofpi_peer *peer = NULL;
    int error = 0;

    if (op->peer != OFP_PEER_ANY) {
        peer = ofpi_peer_get(endpoint, op->peer, &error);
        if (!peer)
            return error;
    }
    if (!endpoint->base.info.offloads_matching)
        return ofpi_receive_post(endpoint->receive_context, &endpoint->base, transfer);
    return endpoint->base.ops->post(&endpoint->base, peer ? &peer->base : NULL, transfer);
}

int ofpi_endpoint_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    struct ofpi_resolved resolved;
    struct ofpi_peer *peer;
    int error;

    if (__builtin_expect(endpoint->closing, 0))
        return -ECANCELED;
    error = ofpi_operation_resolve(endpoint, op, &resolved);
    if (error)
        return error;
    if (ofpi_operation_is_receive(op))
        return post_receive(endpoint, &resolved.transfer);
    peer = ofpi_peer_get(endpoint, op->peer, &error);
    if (!peer)
        return error;
    return ofpi_peer_post(peer, &resolved.transfer);
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

int64_t ofp_post(struct ofp_endpoint *handle, const struct ofp_operation *operations, uint64_t count)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    uint64_t accepted = 0;
    int result = ofpi_domain_enter(endpoint->domain);

    if (result)
        return result;
    while (accepted < count) {
        struct ofp_operation op = operations[accepted];

        if (op.flags & ~(uint64_t)OFP_OPERATION_FLAGS) {
            result = -EINVAL;
            break;
        }
        op.flags |= ofpi_operation_is_receive(&op) ? 0 : endpoint->tx_flags;
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
    result = -ENOENT;
    if (endpoint->receive_context)
        result = ofpi_receive_cancel(endpoint->receive_context, handle, context, 0);
    if (result == -ENOENT)
        result = ofpi_peer_cancel(endpoint, context, 0);
    ofpi_domain_leave(endpoint->domain);
    return result;
}
