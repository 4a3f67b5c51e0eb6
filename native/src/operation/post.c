/* SPDX-License-Identifier: BSD-3-Clause */
/* ofp_post: check an operation and start it at its endpoint. */
#include "operation/post.h"

#include <errno.h>

#include "completion/entries.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "ofipy/ofp.h"
#include "operation/receive_start.h"
#include "operation/resolve.h"
#include "peer/connection.h"
#include "peer/peer_find.h"
#include "peer/peer_post.h"
#include "progress/flush.h"
#include "progress/progress.h"

/* Post on an endpoint without an address vector. The record's `peer` is ignored. */
static int post_to_connection(struct ofpi_endpoint *endpoint, const struct ofp_operation *original)
{
    struct ofpi_connection *connection = endpoint->connection;
    struct ofp_operation op = *original;
    struct ofpi_resolved resolved;
    int result;

    op.peer = ofpi_operation_is_receive(&op) ? OFP_PEER_ANY : OFP_PEER_UNKNOWN;
    result = ofpi_operation_resolve(endpoint, &op, &resolved);
    if (result)
        return result == OFPI_IS_OF_GROUP ? endpoint->domain->upper->group_post(endpoint, original) : result;
    if (ofpi_operation_is_receive(&op)) {
        result = ofpi_receive_start(endpoint, &resolved.transfer);
        /* Messages that arrived before the end can still be received; other receives end. */
        if (!result && connection && connection->error)
            ofpi_connection_end_receives(endpoint);
        return result;
    }
    return ofpi_connection_can_post(connection) ? ofpi_peer_post(connection->peer, &resolved.transfer) : -ENOTCONN;
}

/* Inlined into the fast path. Hooks call ofpi_endpoint_start. */
static inline __attribute__((always_inline)) int start_operation(struct ofpi_endpoint *endpoint,
                                                                 const struct ofp_operation *op)
{
    struct ofpi_resolved resolved;
    struct ofpi_peer *peer;
    int error;

    if (__builtin_expect(!endpoint->av, 0))
        return post_to_connection(endpoint, op);
    error = ofpi_operation_resolve(endpoint, op, &resolved);
    if (error)
        return error == OFPI_IS_OF_GROUP ? endpoint->domain->upper->group_post(endpoint, op) : error;
    if (ofpi_operation_is_receive(op))
        return ofpi_receive_start(endpoint, &resolved.transfer);
    peer = ofpi_peer_get(endpoint, op->peer, &error);
    if (!peer)
        return error;
    return ofpi_peer_post(peer, &resolved.transfer);
}

int ofpi_endpoint_start(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    return start_operation(endpoint, op);
}

static inline __attribute__((always_inline)) int start_or_call_hooks(struct ofpi_endpoint *endpoint,
                                                                     const struct ofp_operation *op)
{
    if (__builtin_expect(endpoint->hooks != NULL, 0))
        return endpoint->domain->upper->hooks_post(endpoint, op);
    return start_operation(endpoint, op);
}

int ofpi_endpoint_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    /* Check here: ofp_post enters the domain without checking the endpoint. */
    if (__builtin_expect(endpoint->stopped, 0)) {
        int result = endpoint->refuses ? -ECANCELED : ofpi_entries_resume(endpoint->domain);

        if (result)
            return result;
    }
    return start_or_call_hooks(endpoint, op);
}

int ofpi_endpoint_post_due(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    int result = 0;

    if (endpoint->stopped)
        result = endpoint->closing ? -ECANCELED : ofpi_entries_resume(endpoint->domain);
    return result ? result : start_or_call_hooks(endpoint, op);
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
        /* If the caller's last record has OFP_MORE, a later post or progress flushes the batch. */
        endpoint->batched = op.flags & OFP_MORE;
        if (accepted + 1 < count)
            op.flags |= OFP_MORE;
        result = ofpi_endpoint_post(endpoint, &op);
        if (result)
            break;
        accepted++;
    }
    /* All but the last record were posted with OFP_MORE. If the last was refused, this flush sends the others. */
    if (count > 1 && !endpoint->batched)
        ofpi_endpoint_flush(endpoint);
    ofpi_domain_leave(endpoint->domain);
    return accepted ? (int64_t)accepted : result;
}
