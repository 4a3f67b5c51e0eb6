/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that outlive their post. A pending object is in exactly one list (its peer's backlog or pendings, or the
 * endpoint's receives from any source) from retain to completion, and has references to its regions for that time.
 */
#include "peer/pending.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/pool.h"
#include "completion/complete.h"
#include "object/count.h"
#include "object/domain.h"
#include "object/operation.h"
#include "object/region.h"
#include "ofipy/iov.h"
#include "ofipy/ofp.h"
#include "peer/backlog.h"
#include "peer/bounce.h"
#include "peer/packed.h"
#include "peer/peer_flush.h"
#include "peer/unsent.h"

/*
 * The caller may reuse an injected payload when the post returns. An inject that is longer than the transport's
 * inject_size reaches the provider as an ordinary operation.
 */
static int copy_inject(struct ofpi_pending *pending, const struct ofp_transfer *transfer)
{
    /* At least one byte: malloc(0) may return NULL, which would look like an error. */
    char *copy = malloc(transfer->length ? transfer->length : 1);

    if (!copy)
        return -ENOMEM;
    ofp_iov_gather(copy, transfer->iov, transfer->iov_count, 0, transfer->length);
    pending->inject_copy = copy;
    pending->iov_inline = (struct iovec){copy, transfer->length};
    pending->region_inline = NULL;
    pending->base.transfer.iov = &pending->iov_inline;
    pending->base.transfer.regions = &pending->region_inline;
    pending->base.transfer.iov_count = 1;
    if (transfer->length > pending->endpoint->info.inject_size)
        pending->base.operation.flags ^= OFP_INJECT | OFPI_COPIED;
    return 0;
}

/* Allocate `many`, for more than one segment: local segments with their regions, then remote segments. */
static int allocate_segment_copies(struct ofpi_pending *pending, uint32_t count, uint32_t remote_count)
{
    size_t size = 0;

    if (count > 1)
        size += count * (sizeof(struct iovec) + sizeof(struct ofp_region *));
    if (remote_count > 1)
        size += remote_count * sizeof(struct ofp_remote_segment);
    if (!size)
        return 0;
    pending->many = malloc(size);
    return pending->many ? 0 : -ENOMEM;
}

/* The layout is the caller's, as its memory is. A packed one that a transport retains passes its buffer to the pending. */
static void store_layout(struct ofpi_pending *pending, const struct ofp_transfer *transfer)
{
    pending->region_inline = NULL;
    pending->base.transfer.regions = &pending->region_inline;
    pending->base.transfer.iov = transfer->iov;
    pending->base.transfer.iov_count = transfer->iov_count;
    if (!(transfer->op->flags & OFPI_PACKED))
        return;
    pending->inject_copy = transfer->iov[0].iov_base;
    pending->iov_inline = transfer->iov[0];
    pending->base.transfer.iov = &pending->iov_inline;
    pending->base.transfer.packed = transfer->packed;
}

static void store_local_segments(struct ofpi_pending *pending, const struct ofp_transfer *transfer)
{
    uint32_t count = transfer->iov_count;
    struct iovec *iov = count > 1 ? pending->many : &pending->iov_inline;
    struct ofp_region **regions = count > 1 ? (struct ofp_region **)(iov + count) : &pending->region_inline;

    for (uint32_t i = 0; i < count; i++) {
        iov[i] = transfer->iov[i];
        regions[i] = transfer->regions[i];
        ofpi_region_retain(regions[i]);
    }
    pending->base.transfer.iov = iov;
    pending->base.transfer.regions = regions;
    pending->base.transfer.iov_count = count;
}

static void store_remote_segments(struct ofpi_pending *pending, const struct ofp_transfer *transfer,
                                  uint32_t local_count)
{
    struct ofp_transfer *kept = &pending->base.transfer;
    struct ofp_remote_segment *remote = &pending->remote_inline;

    if (transfer->remote_count > 1) {
        char *many = pending->many;

        if (local_count > 1)
            many += local_count * (sizeof(struct iovec) + sizeof(struct ofp_region *));
        remote = (struct ofp_remote_segment *)many;
    }
    for (uint32_t i = 0; i < transfer->remote_count; i++)
        remote[i] = transfer->remote[i];
    kept->remote = remote;
    kept->remote_count = transfer->remote_count;
    if (!ofpi_operation_is_atomic(transfer->op))
        return;
    kept->result = transfer->result;
    kept->compare = transfer->compare;
    kept->result_region = transfer->result_region;
    kept->compare_region = transfer->compare_region;
    ofpi_region_retain(kept->result_region);
    ofpi_region_retain(kept->compare_region);
}

static int store_segments(struct ofpi_pending *pending, const struct ofp_transfer *transfer)
{
    bool remote = ofpi_operation_is_remote(transfer->op), inject = transfer->op->flags & OFP_INJECT;
    bool laid_out = transfer->iov_count == OFP_LAYOUT || transfer->op->flags & OFPI_PACKED;
    uint32_t local_count = inject || laid_out ? 1 : transfer->iov_count;
    int result = allocate_segment_copies(pending, local_count, remote ? transfer->remote_count : 0);

    if (!result && inject)
        result = copy_inject(pending, transfer);
    else if (!result && __builtin_expect(laid_out, 0))
        store_layout(pending, transfer);
    else if (!result)
        store_local_segments(pending, transfer);
    if (!result && remote)
        store_remote_segments(pending, transfer, local_count);
    return result;
}

int ofpi_pending_pack(struct ofpi_pending *pending)
{
    struct ofp_transfer *transfer = &pending->base.transfer;
    char *buffer = ofpi_packed_allocate(transfer);

    OFPI_CHECK(!pending->posted && !pending->inject_copy);
    if (!buffer)
        return -ENOMEM;
    pending->inject_copy = buffer;
    pending->iov_inline = (struct iovec){buffer, transfer->length};
    transfer->packed = ofp_layout_of_iov(transfer->iov);
    transfer->iov = &pending->iov_inline;
    transfer->iov_count = 1;
    pending->base.operation.flags |= OFPI_PACKED;
    pending->endpoint->counts->packed++;
    return 0;
}

static struct ofpi_pending *create_pending(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer)
{
    uint64_t id;
    struct ofpi_pending *pending = ofpi_pool_allocate(&endpoint->domain->pendings, &id);
    int result;

    if (!pending)
        return NULL;
    pending->endpoint = endpoint;
    pending->base.id = id;
    pending->base.endpoint = &endpoint->base;
    pending->base.operation = *transfer->op;
    pending->base.transfer.op = &pending->base.operation;
    pending->base.transfer.length = transfer->length;
    result = store_segments(pending, transfer);
    if (!result && __builtin_expect(pending->base.transfer.iov_count == OFP_LAYOUT, 0) &&
        !endpoint->base.ops->moves_layouts)
        result = ofpi_pending_pack(pending);
    /* Allocate before retaining regions, so that a failure has none to release. */
    if (result) {
        free(pending->many);
        ofpi_pool_free(&endpoint->domain->pendings, id);
        return NULL;
    }
    /* Receives do not fill the transmit queue. */
    if (!ofpi_operation_is_receive(transfer->op))
        endpoint->in_flight++;
    return pending;
}

static struct ofpi_pending *acquire_pending(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer,
                                            const struct ofp_transfer *transfer)
{
    struct ofpi_pending *pending;

    if (!peer || ofp_list_empty(&peer->backlog))
        return create_pending(endpoint, transfer);
    pending = OFP_CONTAINER_OF(peer->backlog.next, struct ofpi_pending, base.node);
    /* An operation that bypasses the backlog, such as a receive for a transport that matches. */
    if (transfer != &pending->base.transfer)
        return create_pending(endpoint, transfer);
    /* The provider retains the head of the backlog. */
    ofp_list_remove(&pending->base.node);
    endpoint->backlog_count--;
    return pending;
}

struct ofp_pending *ofpi_transfer_retain(struct ofp_endpoint *handle, struct ofp_peer *peer,
                                         const struct ofp_transfer *transfer)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_pending *pending = acquire_pending(endpoint, (struct ofpi_peer *)peer, transfer);

    if (!pending)
        return NULL;
    OFPI_CHECK(ofpi_domain_is_held(endpoint->domain) && !pending->posted && !ofp_list_linked(&pending->base.node));
    OFPI_CHECK(!peer || peer->state == OFP_PEER_UP || ofpi_operation_is_receive(transfer->op));
    pending->posted = true;
    pending->base.peer = peer;
    pending->peer = (struct ofpi_peer *)peer;
    if (ofpi_operation_is_receive(&pending->base.operation))
        pending->sequence = ++endpoint->last_receive;
    else if (peer)
        ((struct ofpi_peer *)peer)->sending++;
    ofp_list_append(peer ? &((struct ofpi_peer *)peer)->pendings : &endpoint->sourceless, &pending->base.node);
    return &pending->base;
}

int ofpi_backlog_append(struct ofpi_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)peer->base.endpoint;
    struct ofpi_pending *pending = create_pending(endpoint, transfer);

    if (!pending)
        return -ENOMEM;
    pending->base.peer = &peer->base;
    pending->peer = peer;
    OFPI_CHECK(peer->base.state != OFP_PEER_LOST || ofp_list_empty(&peer->backlog));
    ofp_list_append(&peer->backlog, &pending->base.node);
    endpoint->backlog_count++;
    return 0;
}

struct ofp_pending *ofpi_pending_find(struct ofp_peer *peer, uint64_t id)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)peer->endpoint;
    struct ofpi_pending *pending = ofpi_pool_find(&endpoint->domain->pendings, id);

    /* The peer chose the number: it may be invalid, or name another peer's operation. */
    if (!pending || pending->peer != (struct ofpi_peer *)peer || !pending->posted)
        return NULL;
    return &pending->base;
}

static void free_inject_copy(struct ofpi_pending *pending)
{
    if (pending->inject_copy && pending->endpoint->hooks)
        pending->endpoint->domain->upper->hooks_released(pending->endpoint, pending->inject_copy,
                                                         pending->base.transfer.length);
    free(pending->inject_copy);
}

void ofpi_pending_free(struct ofpi_pending *pending)
{
    struct ofpi_endpoint *endpoint = pending->endpoint;
    struct ofpi_peer *peer = pending->peer;
    struct ofpi_flush_part *flush = pending->flushed ? pending->flush : NULL;

    OFPI_CHECK(ofp_list_linked(&pending->base.node) && ofpi_pool_find(&endpoint->domain->pendings, pending->base.id));
    OFPI_CHECK(pending->posted || endpoint->backlog_count);
    if (__builtin_expect(pending->base.transfer.iov_count != OFP_LAYOUT, 1))
        for (uint32_t i = 0; i < pending->base.transfer.iov_count; i++)
            ofpi_region_release(pending->base.transfer.regions[i]);
    if (__builtin_expect(pending->base.operation.flags & OFPI_HELD, 0))
        ofpi_bounce_free(endpoint, pending->base.transfer.iov->iov_base, pending->base.transfer.length);
    if (ofpi_operation_is_atomic(&pending->base.operation)) {
        ofpi_region_release(pending->base.transfer.result_region);
        ofpi_region_release(pending->base.transfer.compare_region);
    }
    free(pending->many);
    free_inject_copy(pending);
    ofp_list_remove(&pending->base.node);
    if (!pending->posted)
        endpoint->backlog_count--;
    if (!ofpi_operation_is_receive(&pending->base.operation)) {
        OFPI_CHECK(endpoint->in_flight && (!peer || !pending->posted || peer->sending));
        endpoint->in_flight--;
        if (peer) {
            peer->sending -= pending->posted;
            /* This operation may have been the last one before the fence. */
            if (__builtin_expect(peer->fenced, 0))
                ofpi_peer_fence_update(peer);
        }
    }
    ofpi_pool_free(&endpoint->domain->pendings, pending->base.id);
    if (__builtin_expect(flush != NULL, 0))
        ofpi_flush_operation_ended(flush);
}

/* Receives are counted where they complete. `peer` may be NULL for them. */
static inline void count_operation(struct ofpi_endpoint *endpoint, const struct ofpi_peer *peer,
                                   const struct ofp_transfer *transfer, enum ofp_protocol protocol, uint32_t class)
{
    uint32_t completed = ofpi_row_of_operation(transfer->op)->completed;

    if (completed & OFP_COMPLETED_SEND)
        ofpi_message_count_sent(endpoint, peer->counts, protocol, class, transfer->length);
    else if (completed & OFP_COMPLETED_ATOMIC)
        endpoint->counts->atomics++;
    else if (completed & OFP_COMPLETED_READ)
        endpoint->counts->reads++;
    else if (completed & OFP_COMPLETED_WRITE)
        endpoint->counts->writes++;
}

static void count_error(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    uint32_t place = endpoint->av ? ofpi_index_of_id(op->peer) : 0;
    const struct ofpi_peer *peer = place < endpoint->peer_capacity ? endpoint->peers[place] : NULL;

    endpoint->counts->errors++;
    if (peer)
        peer->counts->errors++;
    else
        endpoint->counts->others.errors++;
}

static void report_transfer(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer, int error,
                            int provider_error)
{
    const struct ofp_operation *op = transfer->op;
    const struct ofp_operation_row *row = ofpi_row_of_operation(op);
    /* A receive ends here only without a message, with the same completion as a receive that the core matches. */
    bool receive = row->traits & OFP_RECEIVES;
    struct ofp_completion completion = {
        .context = op->context,
        .flags = row->completed,
        .length = receive ? 0 : transfer->length,
        .tag = row->channel != OFP_CHANNEL_MESSAGE ? op->tag & ~(receive ? op->ignore : 0) : 0,
        .source = op->peer == OFP_PEER_ANY ? OFP_PEER_UNKNOWN : op->peer,
        .error = error,
        .provider_error = provider_error,
    };

    if (error)
        count_error(endpoint, op);
    ofpi_endpoint_complete(&endpoint->base, op->flags, &completion);
}

void ofpi_transfer_report_done(struct ofpi_endpoint *endpoint, const struct ofpi_peer *peer,
                               const struct ofp_transfer *transfer, enum ofp_protocol protocol)
{
    const struct ofp_operation *op = transfer->op;
    const struct ofp_operation_row *row = ofpi_row_of_operation(op);
    struct ofp_completion completion = {
        .context = op->context,
        .flags = row->completed,
        .length = transfer->length,
        .tag = row->channel != OFP_CHANNEL_MESSAGE ? op->tag : 0,
        .source = op->peer,
    };

    /* No transport takes 4 GiB within a post. */
    count_operation(endpoint, peer, transfer, protocol, ofpi_size_class_compute((uint32_t)transfer->length));
    ofpi_endpoint_complete(&endpoint->base, op->flags, &completion);
}

/* A function of its own: the report of any other transfer keeps nothing in memory for the call. */
static __attribute__((noinline)) void report_packed(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer,
                                                    int error, int provider_error)
{
    ofpi_packed_scatter(transfer, error);
    report_transfer(endpoint, transfer, error, provider_error);
}

void ofpi_transfer_report(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer, int error,
                          int provider_error)
{
    if (__builtin_expect(transfer->op->flags & OFPI_PACKED, 0))
        report_packed(endpoint, transfer, error, provider_error);
    else
        report_transfer(endpoint, transfer, error, provider_error);
}

/* Report the release of a multi-receive buffer without a message. */
static void report_release(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, int error,
                           int provider_error)
{
    struct ofp_completion completion = {
        .context = op->context,
        .flags = OFP_COMPLETED_MULTI_RECV,
        .source = OFP_PEER_UNKNOWN,
        .error = error,
        .provider_error = provider_error,
    };

    ofpi_endpoint_complete(&endpoint->base, op->flags, &completion);
}

void ofpi_transfer_end(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer, int error,
                       int provider_error)
{
    if (__builtin_expect(transfer->op->flags & OFP_MULTI_RECV, 0))
        report_release(endpoint, transfer->op, error, provider_error);
    else
        ofpi_transfer_report(endpoint, transfer, error, provider_error);
}

/* The confirmation of a flush is the core's own: it has no completion, and is not counted. */
static __attribute__((noinline)) void complete_confirmation(struct ofpi_pending *pending, int error, int provider_error)
{
    struct ofpi_flush_part *flush = pending->flush;

    ofpi_pending_free(pending);
    ofpi_flush_confirmed(flush, error, provider_error);
}

void ofpi_transfer_complete(struct ofp_pending *base, int error, int provider_error)
{
    struct ofpi_pending *pending = (struct ofpi_pending *)base;

    OFPI_CHECK(ofpi_domain_is_held(pending->endpoint->domain) && error >= 0);
    if (__builtin_expect(pending->confirms, 0)) {
        complete_confirmation(pending, error, provider_error);
        return;
    }
    if (__builtin_expect(error != 0, 0)) {
        /*
         * The core cancelled this receive, not its owner: it is posted again and matches the message that was returned.
         */
        if (pending->recalled && error == ECANCELED && !pending->endpoint->closing) {
            pending->endpoint->domain->upper->receive_recalled(pending);
            return;
        }
        if (pending->endpoint->lingers)
            ofpi_unsent_add(pending->endpoint, pending->peer, &base->operation);
    } else {
        count_operation(pending->endpoint, pending->peer, &base->transfer,
                        base->protocol < OFPI_SENT_PROTOCOLS ? (enum ofp_protocol)base->protocol
                                                             : OFP_PROTOCOL_ANNOUNCED,
                        ofpi_size_class_compute_any(base->transfer.length));
    }
    ofpi_transfer_end(pending->endpoint, &base->transfer, error, provider_error);
    ofpi_pending_free(pending);
}
