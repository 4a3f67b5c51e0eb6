/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting operations to a peer. While the peer is not UP, or the transport has no space, operations wait in the peer's
 * backlog in the order in which they were posted.
 */
#include "peer/peer_post.h"

#include <errno.h>

#include "base/check.h"
#include "base/clock.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "object/owner.h"
#include "peer/backlog.h"
#include "peer/peer_connect.h"
#include "peer/pending.h"
#include "progress/progress.h"

/* Start the timer of a head that a hook delays. False: its time has come. */
static bool defer_delayed_head(struct ofpi_peer *peer, struct ofp_operation *op)
{
    uint64_t not_before = ((const struct ofpi_delayed_owner *)(uintptr_t)op->context)->not_before;

    if (ofpi_clock_read() >= not_before) {
        op->flags &= ~OFPI_DELAYED;
        return false;
    }
    peer->delay.deadline = not_before;
    ofpi_timer_start(ofpi_endpoint_of_peer(&peer->base)->domain, &peer->delay);
    ofp_list_remove(&peer->node);
    return true;
}

/* Post the head of a backlog. False: the transport has no space, or the head is fenced or delayed; the rest stays. */
static bool flush_backlog_head(struct ofpi_peer *peer)
{
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);
    struct ofp_pending *head = OFP_CONTAINER_OF(peer->backlog.next, struct ofp_pending, node);
    int result;

    OFPI_CHECK(peer->base.state == OFP_PEER_UP && !ofp_list_empty(&peer->backlog) && ofp_list_linked(&peer->node));
    if (__builtin_expect(head->operation.flags & OFP_FENCE, 0) &&
        ofpi_backlog_is_behind_fence(peer, &head->operation)) {
        /* Do not try again until one of the operations before the fence ends. */
        peer->fenced = true;
        ofp_list_remove(&peer->node);
        return false;
    }
    if (__builtin_expect(head->operation.flags & OFPI_DELAYED, 0) && defer_delayed_head(peer, &head->operation))
        return false;
    result = endpoint->base.ops->post(&endpoint->base, &peer->base, &head->transfer);
    if (__builtin_expect(result == -E2BIG, 0) && head->transfer.iov_count == OFP_LAYOUT) {
        result = ofpi_pending_pack((struct ofpi_pending *)head);
        /* The next try posts it. */
        if (!result)
            return true;
    }
    /* The operation stays the head, so the order towards the peer is preserved. */
    if (result == -EAGAIN)
        return false;
    /* OFP_POST_PENDING: the provider called transfer_retain, which moved the operation to the peer's pendings. */
    if (result == OFP_POST_BOUNCED)
        head->protocol = OFP_PROTOCOL_BOUNCE;
    if (result != OFP_POST_PENDING)
        ofpi_transfer_complete(head, result > 0 ? 0 : -result, 0);
    return true;
}

/* Whether the operation is bound to another incarnation than the present one. */
static bool is_of_other_incarnation(const struct ofpi_peer *peer, const struct ofp_operation *op)
{
    return op->flags & OFP_BOUND && !ofpi_peer_is_in(peer, op->reserved);
}

static __attribute__((noinline)) int defer_transfer(struct ofpi_peer *peer, const struct ofp_transfer *transfer)
{
    int result;

    /* The operation ends as those did that were posted before the loss, and connects nothing. */
    if (is_of_other_incarnation(peer, transfer->op)) {
        ofpi_transfer_report(ofpi_endpoint_of_peer(&peer->base), transfer, OFP_EPEERLOST, 0);
        return 0;
    }
    /* Append before connecting: if that fails within the call, the loss also ends this operation. */
    result = ofpi_backlog_append(peer, transfer);
    if (result)
        return result;
    if (peer->base.state == OFP_PEER_UP)
        ofpi_backlog_schedule(peer);
    else if (peer->base.state != OFP_PEER_CONNECTING)
        ofpi_peer_connect(peer);
    /* If connecting needed no round trip, post at once. */
    if (peer->base.state == OFP_PEER_UP && ofp_list_linked(&peer->node) && peer->backlog.next == peer->backlog.previous)
        flush_backlog_head(peer);
    return 0;
}

/*
 * Whether the operation must enter the backlog even if the transport has space: to wait there, or to have its payload
 * copied; or whether it ends instead.
 */
static bool needs_backlog(const struct ofpi_peer *peer, const struct ofp_transfer *transfer)
{
    /* The caller may reuse the payload when the post returns, and the transport copies at most its inject_size. */
    if (transfer->op->flags & OFP_INJECT && transfer->length > peer->base.endpoint->info->inject_size)
        return true;
    return transfer->op->flags & OFPI_DELAYED || is_of_other_incarnation(peer, transfer->op) ||
           ofpi_backlog_is_behind_fence(peer, transfer->op);
}

/* A transport that cannot move the layout gets it packed, from the backlog. */
static __attribute__((noinline)) int post_layout(struct ofpi_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);
    int result = -E2BIG;

    if (endpoint->base.ops->moves_layouts)
        result = endpoint->base.ops->post(&endpoint->base, &peer->base, transfer);
    if (result > 0) {
        ofpi_transfer_report_done(endpoint, peer, transfer,
                                  result == OFP_POST_BOUNCED ? OFP_PROTOCOL_BOUNCE : OFP_PROTOCOL_EAGER);
        return 0;
    }
    return result == -EAGAIN || result == -E2BIG ? defer_transfer(peer, transfer) : result;
}

int ofpi_peer_post(struct ofpi_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);
    int result;

    OFPI_CHECK(ofpi_domain_is_held(endpoint->domain) && !ofpi_operation_is_receive(transfer->op));
    if (ofpi_endpoint_is_full(endpoint))
        return -EAGAIN;
    /* Append behind a backlog that is not empty, or messages would overtake each other. */
    if (__builtin_expect(peer->base.state != OFP_PEER_UP || !ofp_list_empty(&peer->backlog), 0))
        return defer_transfer(peer, transfer);
    if (__builtin_expect(transfer->op->flags & (OFP_INJECT | OFP_FENCE | OFPI_DELAYED | OFP_BOUND), 0) &&
        needs_backlog(peer, transfer))
        return defer_transfer(peer, transfer);
    if (__builtin_expect(transfer->iov_count == OFP_LAYOUT, 0))
        return post_layout(peer, transfer);
    result = endpoint->base.ops->post(&endpoint->base, &peer->base, transfer);
    if (result > 0) {
        ofpi_transfer_report_done(endpoint, peer, transfer,
                                  result == OFP_POST_BOUNCED ? OFP_PROTOCOL_BOUNCE : OFP_PROTOCOL_EAGER);
        return 0;
    }
    /* The caller never gets the transport's -EAGAIN: only tx_size limits the operations in flight. */
    return result == -EAGAIN ? defer_transfer(peer, transfer) : result;
}

int ofpi_peers_flush(struct ofpi_endpoint *endpoint)
{
    struct ofp_list *node, *following;
    int moved = 0;

    OFP_LIST_EACH(node, following, &endpoint->backlogged) {
        struct ofpi_peer *peer = OFP_CONTAINER_OF(node, struct ofpi_peer, node);

        while (!ofp_list_empty(&peer->backlog) && flush_backlog_head(peer))
            moved++;
        /* A peer that was lost within a post is no longer in the list. */
        if (ofp_list_empty(&peer->backlog) && ofp_list_linked(&peer->node))
            ofp_list_remove(&peer->node);
    }
    /* The last operation may have OFP_MORE although none follows it now. */
    if (moved && endpoint->base.ops->flush)
        endpoint->base.ops->flush(&endpoint->base);
    return moved;
}

static int cancel_queued_operation(struct ofp_list *list, uint64_t context, uint64_t op_flags)
{
    /* Cancel the newest operation of this context, as ofp_cancel documents. */
    for (struct ofp_list *node = list->previous; node != list; node = node->previous) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(node, struct ofp_pending, node);

        if (ofpi_owner_is_same(pending->operation.context, pending->operation.flags, context, op_flags)) {
            ofpi_transfer_complete(pending, ECANCELED, 0);
            return 0;
        }
    }
    return -ENOENT;
}

static bool is_receive_of(const struct ofp_pending *pending, uint64_t context, uint64_t op_flags)
{
    return ofpi_operation_is_receive(&pending->operation) &&
           ofpi_owner_is_same(pending->operation.context, pending->operation.flags, context, op_flags);
}

static int cancel_offloaded_receive(struct ofpi_endpoint *endpoint, struct ofp_pending *pending)
{
    int result;

    /* The operation's owner cancels it, so it must not be posted again. */
    ((struct ofpi_pending *)pending)->recalled = false;
    result = endpoint->base.ops->cancel ? endpoint->base.ops->cancel(&endpoint->base, pending) : -ENOENT;
    if (!result)
        ofpi_transfer_complete(pending, ECANCELED, 0);
    return result;
}

static int cancel_newest_receive(struct ofpi_endpoint *endpoint, struct ofp_list *list, uint64_t context,
                                 uint64_t op_flags)
{
    for (struct ofp_list *node = list->previous; node != list; node = node->previous) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(node, struct ofp_pending, node);

        if (is_receive_of(pending, context, op_flags))
            return cancel_offloaded_receive(endpoint, pending);
    }
    return -ENOENT;
}

static int cancel_in_backlog(struct ofpi_peer *peer, uint64_t context, uint64_t op_flags)
{
    int result = cancel_queued_operation(&peer->backlog, context, op_flags);

    /* The cancelled operation may be a delayed head. The operations behind it are not delayed. */
    if (!result && peer->delay.position)
        ofpi_backlog_delay_end(peer);
    return result;
}

int ofpi_peer_cancel(struct ofpi_endpoint *endpoint, uint64_t context, uint64_t op_flags)
{
    int result = cancel_newest_receive(endpoint, &endpoint->sourceless, context, op_flags);

    for (uint32_t i = 0; i < endpoint->peer_capacity && result == -ENOENT; i++) {
        if (!endpoint->peers[i])
            continue;
        result = cancel_in_backlog(endpoint->peers[i], context, op_flags);
        if (result == -ENOENT)
            result = cancel_newest_receive(endpoint, &endpoint->peers[i]->pendings, context, op_flags);
    }
    return result;
}

static void cancel_receives(struct ofpi_endpoint *endpoint, struct ofp_list *list, uint64_t context, uint64_t op_flags)
{
    struct ofp_list *node, *following;

    /* Of a receive whose cancel ends later, or that has matched, the transport reports the end. */
    OFP_LIST_EACH(node, following, list) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(node, struct ofp_pending, node);

        if (is_receive_of(pending, context, op_flags))
            (void)cancel_offloaded_receive(endpoint, pending);
    }
}

void ofpi_peers_cancel(struct ofpi_endpoint *endpoint, uint64_t context, uint64_t op_flags)
{
    int result = 0;

    cancel_receives(endpoint, &endpoint->sourceless, context, op_flags);
    for (uint32_t i = 0; i < endpoint->peer_capacity; i++, result = 0) {
        if (!endpoint->peers[i])
            continue;
        while (!result)
            result = cancel_in_backlog(endpoint->peers[i], context, op_flags);
        cancel_receives(endpoint, &endpoint->peers[i]->pendings, context, op_flags);
    }
}
