/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA and atomics: remote segments in the form of libfabric's calls. */
#include <errno.h>

#include "bridge.h"

/* ------------------------------------------------------------------------------------------------------------- RMA */

static ssize_t call_rma(const struct bridge_call *call, const struct ofp_transfer *transfer, uint64_t flags)
{
    struct lf_rma_iov remote[OFP_SEGMENT_LIMIT];
    struct lf_msg_rma msg = {.iov = transfer->iov,
                             .descriptors = call->local,
                             .iov_count = transfer->iov_count,
                             .address = call->address,
                             .remote = remote,
                             .remote_count = transfer->remote_count,
                             .context = call->context,
                             .data = transfer->op->data};

    for (uint32_t i = 0; i < transfer->remote_count; i++)
        remote[i] =
            (struct lf_rma_iov){transfer->remote[i].offset, transfer->remote[i].length, transfer->remote[i].key};
    if (transfer->op->op == OFP_READ)
        return call->ep->rma->readmsg(call->ep, &msg, flags);
    return call->ep->rma->writemsg(call->ep, &msg, flags);
}

/* --------------------------------------------------------------------------------------------------------- atomics */

static const size_t sizes[] = {
    [OFP_INT8] = 1,          [OFP_UINT8] = 1,           [OFP_INT16] = 2,   [OFP_UINT16] = 2, [OFP_INT32] = 4,
    [OFP_UINT32] = 4,        [OFP_INT64] = 8,           [OFP_UINT64] = 8,  [OFP_FLOAT] = 4,  [OFP_DOUBLE] = 8,
    [OFP_FLOAT_COMPLEX] = 8, [OFP_DOUBLE_COMPLEX] = 16, [OFP_FLOAT16] = 2,
};

/* ofipy's numbers of operations and types equal libfabric's (types.h). */
static ssize_t call_atomic(const struct bridge_call *call, const struct ofp_transfer *transfer, uint64_t flags)
{
    const struct ofp_operation *op = transfer->op;
    size_t size = sizes[op->datatype], count = transfer->length / size;
    struct lf_ioc operand = {transfer->iov[0].iov_base, count};
    struct lf_ioc compare = {(void *)(uintptr_t)transfer->compare, count}, result = {transfer->result, count};
    void *compare_descriptors[] = {call->descriptors[BRIDGE_COMPARE]};
    void *result_descriptors[] = {call->descriptors[BRIDGE_RESULT]};
    struct lf_rma_ioc remote[OFP_SEGMENT_LIMIT];
    struct lf_msg_atomic msg = {.iov = &operand,
                                .descriptors = call->local,
                                .iov_count = 1,
                                .address = call->address,
                                .remote = remote,
                                .remote_count = transfer->remote_count,
                                .datatype = op->datatype,
                                .op = op->atomic_op,
                                .context = call->context};

    for (uint32_t i = 0; i < transfer->remote_count; i++)
        remote[i] =
            (struct lf_rma_ioc){transfer->remote[i].offset, transfer->remote[i].length / size, transfer->remote[i].key};
    if (op->op == OFP_ATOMIC)
        return call->ep->atomic->writemsg(call->ep, &msg, flags);
    if (op->op == OFP_FETCH_ATOMIC)
        return call->ep->atomic->readwritemsg(call->ep, &msg, &result, result_descriptors, 1, flags);
    return call->ep->atomic->compwritemsg(call->ep, &msg, &compare, compare_descriptors, 1, &result, result_descriptors,
                                          1, flags);
}

ssize_t bridge_call_remote(const struct bridge_call *call, const struct ofp_transfer *transfer, uint64_t flags)
{
    return ofp_operation_is(transfer->op->op, OFP_ATOMIC_KIND) ? call_atomic(call, transfer, flags)
                                                               : call_rma(call, transfer, flags);
}

static int query_atomic(const struct bridge_domain *domain, uint32_t operation_code, uint32_t atomic_op,
                        uint32_t datatype, uint64_t *count)
{
    static const uint64_t kinds[] = {[OFP_FETCH_ATOMIC] = LF_FETCH_ATOMIC, [OFP_COMPARE_ATOMIC] = LF_COMPARE_ATOMIC};
    struct lf_atomic_attr attr = {0};

    /* sm2_atomic_format compares the wrong field with FI_ATOMIC_READ, so the answer would have no bytes. */
    if (domain->misreads_atomics && operation_code == OFP_FETCH_ATOMIC && atomic_op == OFP_ATOMIC_READ)
        return -EOPNOTSUPP;
    if (!LF_HAS(domain->domain->ops, struct lf_domain_ops, query_atomic) ||
        domain->domain->ops->query_atomic(domain->domain, (int)datatype, (int)atomic_op, &attr,
                                          kinds[operation_code]) != 0 ||
        !attr.count)
        return -EOPNOTSUPP;
    *count = attr.count;
    return 0;
}

int bridge_atomic_query(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                        uint64_t *count)
{
    const struct bridge_domain *domain = (const struct bridge_domain *)(uintptr_t)info->provider_data[1];

    return domain ? query_atomic(domain, operation_code, atomic_op, datatype, count) : -EOPNOTSUPP;
}

int bridge_atomic_check(const struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    uint64_t limit;
    int result = query_atomic(bridge_domain_of(endpoint->domain), op->op, op->atomic_op, op->datatype, &limit);

    if (result && bridge_domain_of(endpoint->domain)->misreads_atomics && op->atomic_op == OFP_ATOMIC_READ)
        bridge_core->log(OFP_LOG_WARNING, BRIDGE_NAME, "%s of libfabric answers fetching reads with arbitrary bytes",
                         endpoint->info->provider);
    if (result)
        return result;
    return transfer->length / sizes[op->datatype] > limit ? -EMSGSIZE : 0;
}

uint64_t bridge_atomic_compute_longest(const struct bridge_domain *domain)
{
    uint64_t longest = 0, count;

    for (uint32_t op = OFP_ATOMIC_MIN; op <= OFP_ATOMIC_DIFF; op++)
        for (uint32_t type = 0; type < sizeof(sizes) / sizeof(sizes[0]); type++)
            for (uint32_t code = 0; code < OFP_OPERATION_COUNT; code++)
                if (sizes[type] && ofp_operation_is(code, OFP_ATOMIC_KIND) &&
                    query_atomic(domain, code, op, type, &count) == 0 && count * sizes[type] > longest)
                    longest = count * sizes[type];
    return longest;
}

/* ----------------------------------------------------------------------------------------------------------- flushing */

/*
 * libfabric has no flush for endpoints without connections. A write of no bytes that completes at delivery stands in
 * for it, if it arrives behind the others: by the order of the transport, or by a fence. A transport with neither
 * delivers each write with a completion of its own.
 */
static bool has_ordered_writes(const struct ofp_info *info) { return info->msg_order & OFP_ORDER_WAW; }

static bool has_fence(const struct ofp_info *info) { return info->caps & ~info->emulated_caps & OFP_CAP_FENCE; }

/* A write, or an atomic without a result: their completions may come before their bytes. */
static bool can_complete_early(const struct ofp_operation *op)
{
    return ofp_operation_is(op->op, OFP_REMOTE) && !ofp_operation_is(op->op, OFP_READS);
}

static bool is_confirmation(const struct ofp_transfer *transfer)
{
    return transfer->op->op == OFP_WRITE && !transfer->length && transfer->op->flags & OFP_DELIVERY_COMPLETE;
}

uint64_t bridge_remote_choose_flags(const struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer)
{
    const struct ofp_info *info = endpoint->info;

    if (!can_complete_early(transfer->op) || has_ordered_writes(info))
        return 0;
    if (has_fence(info))
        return is_confirmation(transfer) ? LF_FENCE : 0;
    return bridge_domain_of(endpoint->domain)->levels & LF_DELIVERY_COMPLETE;
}

void bridge_remote_posted(const struct ofp_peer *peer, const struct ofp_transfer *transfer, uint64_t flags)
{
    struct ofp_remote_segment *unconfirmed = &bridge_peer_of(peer)->unconfirmed;

    if (is_confirmation(transfer))
        unconfirmed->length = 0;
    else if (can_complete_early(transfer->op) && transfer->length && !(flags & LF_DELIVERY_COMPLETE))
        *unconfirmed =
            (struct ofp_remote_segment){transfer->remote[0].offset, transfer->length, transfer->remote[0].key};
}

bool bridge_peer_needs_flush(const struct ofp_peer *peer, struct ofp_remote_segment *there)
{
    *there = bridge_peer_of(peer)->unconfirmed;
    return there->length != 0;
}
