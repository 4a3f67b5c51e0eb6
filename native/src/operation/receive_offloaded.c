/* SPDX-License-Identifier: BSD-3-Clause */
#include "operation/receive_offloaded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "completion/complete.h"
#include "match/receive_post.h"
#include "match/selector.h"
#include "match/unexpected.h"
#include "object/operation.h"
#include "object/peer.h"
#include "peer/bounce.h"
#include "peer/packed.h"
#include "peer/pending.h"

/* A bounce buffer keeps this many bytes resident. Further pages that a message touched are returned to the system. */
#define RESIDENT_SIZE (256 << 10)

#define ACTION_FLAGS (OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD | OFP_MULTI_RECV)

/* Return the whole pages behind the first RESIDENT_SIZE bytes. A hint: failure has no effect. */
static void return_pages(char *memory, uint64_t length)
{
    const uintptr_t page = 4096;
    uintptr_t first = ((uintptr_t)memory + RESIDENT_SIZE + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)memory + length) & ~(page - 1);

    if (end > first)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

/* --------------------------------------------------------------------------------------------------------- posting */

/*
 * Post an ordinary receive into a bounce buffer to the transport. The operation's flags apply when the message is here.
 */
static int post_bounced_receive(struct ofpi_endpoint *endpoint, struct ofp_peer *peer,
                                const struct ofp_operation *operation, uint64_t size)
{
    struct ofp_operation op = *operation;
    struct iovec memory = {ofpi_bounce_allocate(endpoint, size), size};
    struct ofp_region *region;
    struct ofp_transfer bounced = {
        .op = &op, .iov = &memory, .regions = &region, .iov_count = 1, .length = memory.iov_len};
    int result;

    if (!memory.iov_base)
        return -ENOMEM;
    region = ofpi_region_of_bounce(memory.iov_base, size);
    op.flags = (op.flags & ~ACTION_FLAGS) | OFPI_HELD;
    if (operation->flags & OFP_DISCARD)
        op.flags |= OFPI_DISCARDED;
    else if (!(operation->flags & OFP_CLAIM))
        op.flags |= OFPI_PEEKED;
    result = endpoint->base.ops->post(&endpoint->base, peer, &bounced);
    if (result < 0)
        ofpi_bounce_free(endpoint, memory.iov_base, size);
    return result;
}

/* Whether a receive is for a message that the core has. */
static bool is_for_unexpected(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    struct ofpi_unexpected_messages *unexpected = &endpoint->receive_context->unexpected;
    struct ofpi_selector selector = ofpi_selector_of(op);

    if (__builtin_expect(!unexpected->messages, 1))
        return false;
    if ((op->flags & (OFP_CLAIM | OFP_PEEK | OFP_HOLD)) == OFP_CLAIM)
        return ofpi_unexpected_find_set_aside(unexpected, &endpoint->base, op->context, op->flags);
    /* The core's unexpected messages arrived before all messages that the transport still has. */
    return unexpected->waiting && !(op->flags & OFP_MULTI_RECV) && ofpi_unexpected_find(unexpected, &selector);
}

int ofpi_offloaded_post(struct ofpi_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    if (is_for_unexpected(endpoint, transfer->op))
        return ofpi_receive_post(endpoint->receive_context, &endpoint->base, transfer);
    /*
     * The transport cannot set messages aside: the core receives the message into a bounce buffer and claims it from
     * there.
     */
    if ((transfer->op->flags & ACTION_FLAGS) == (OFP_HOLD | OFP_CLAIM))
        return post_bounced_receive(endpoint, peer, transfer->op, endpoint->base.bounce_size);
    if ((transfer->op->flags & (OFP_CLAIM | OFP_PEEK)) == OFP_CLAIM)
        return -ENOENT;
    if (__builtin_expect(transfer->iov_count == OFP_LAYOUT, 0))
        return ofpi_packed_receive_post(endpoint, peer, transfer);
    return endpoint->base.ops->post(&endpoint->base, peer, transfer);
}

/* --------------------------------------------------------------------------------------------------------- holding */

/* Enter the message of a bounce buffer into the receive context, neither waiting nor set aside yet. */
static struct ofpi_unexpected *store_bounced_message(struct ofpi_pending *pending, const struct ofp_message *message)
{
    char *memory = pending->base.transfer.iov->iov_base;
    struct ofpi_unexpected *kept = ofpi_unexpected_reserve(&pending->endpoint->receive_context->unexpected,
                                                           &pending->endpoint->base, message, OFP_ROOM_PROMISED, true);

    if (kept && message->length)
        memcpy(ofpi_payload_of_unexpected(kept), memory, message->length);
    /* With a cached registration the transport writes to the registered pages, so they must stay. */
    if (!pending->region_inline)
        return_pages(memory, message->length);
    return kept;
}

static int set_aside_message(struct ofpi_pending *pending, const struct ofp_message *message)
{
    struct ofpi_unexpected_messages *unexpected = &pending->endpoint->receive_context->unexpected;
    const struct ofp_operation *op = &pending->base.operation;
    struct ofpi_unexpected *kept = store_bounced_message(pending, message);

    if (!kept)
        return ENOMEM;
    if (!(op->flags & OFPI_PEEKED)) {
        ofpi_unexpected_set_aside(unexpected, kept, &pending->endpoint->base, op->context, op->flags);
    } else if (ofpi_unexpected_insert(unexpected, kept)) {
        ofpi_unexpected_free(unexpected, kept);
        return ENOMEM;
    }
    return 0;
}

/*
 * Whether a peeked message must be received: to claim it, to drop it, or because the transport does not report its
 * source.
 */
static bool needs_receive(const struct ofpi_pending *pending, const struct ofp_message *message)
{
    return pending->base.operation.flags & (OFP_CLAIM | OFP_DISCARD) ||
           (message->source == OFP_PEER_UNKNOWN && pending->endpoint->info.caps & OFP_CAP_SOURCE);
}

bool ofpi_offloaded_found(struct ofpi_pending *pending, const struct ofp_message *message,
                          struct ofp_offloaded *offloaded)
{
    struct ofp_operation *op = &pending->base.operation;

    if (op->flags & OFP_PEEK) {
        if (offloaded->error || !needs_receive(pending, message))
            return false;
        offloaded->error = -post_bounced_receive(pending->endpoint, pending->base.peer, op, message->length);
        if (offloaded->error)
            return false;
        ofpi_pending_free(pending);
        return true;
    }
    /* The message was longer than the core's bounce buffer, not than a user's receive: report OFP_ETOOLONG. */
    if (offloaded->error == OFP_ETRUNC)
        offloaded->error = OFP_ETOOLONG;
    if (!offloaded->error && !(op->flags & OFPI_DISCARDED))
        offloaded->error = set_aside_message(pending, message);
    if (op->flags & (OFPI_DISCARDED | OFPI_PEEKED))
        op->flags |= OFP_PEEK; /* no payload was transferred */
    else if (!offloaded->error)
        offloaded->flags |= OFP_COMPLETED_CLAIM;
    return false;
}

/* --------------------------------------------------------------------------------------------------------- recalling */

/* Whether a receive that is posted to the transport matches a returned message. */
static bool can_receive(const struct ofpi_pending *receive, const struct ofpi_unexpected *kept)
{
    const struct ofp_operation *op = &receive->base.operation;

    if (!receive->posted || ofpi_row_of_operation(op)->channel != kept->channel ||
        op->flags & (ACTION_FLAGS | OFPI_DISCARDED | OFPI_PEEKED))
        return false;
    return kept->channel == OFP_CHANNEL_MESSAGE || !((op->tag ^ kept->tag) & ~op->ignore);
}

/* The oldest receive in a list that matches the message and was posted after `sequence`. */
static struct ofpi_pending *find_next_receive_in(const struct ofp_list *list, const struct ofpi_unexpected *kept,
                                                 uint64_t sequence)
{
    for (struct ofp_list *node = list->next; node != list; node = node->next) {
        struct ofpi_pending *receive = OFP_CONTAINER_OF(node, struct ofpi_pending, base.node);

        if (receive->sequence > sequence && can_receive(receive, kept))
            return receive;
    }
    return NULL;
}

static struct ofpi_pending *find_next_receive(const struct ofpi_endpoint *endpoint, const struct ofpi_unexpected *kept,
                                              uint64_t sequence)
{
    const struct ofpi_peer *peer = ofpi_peer_find_at(endpoint, kept->source);
    struct ofpi_pending *any = find_next_receive_in(&endpoint->sourceless, kept, sequence), *directed = NULL;

    if (peer)
        directed = find_next_receive_in(&peer->pendings, kept, sequence);
    if (!any || !directed)
        return any ? any : directed;
    return any->sequence < directed->sequence ? any : directed;
}

void ofpi_offloaded_post_again(struct ofpi_pending *receive)
{
    struct ofpi_endpoint *endpoint = receive->endpoint;
    struct ofp_operation op = receive->base.operation;
    struct ofp_transfer transfer = receive->base.transfer;
    int result;

    transfer.op = &op;
    if (op.flags & OFPI_HELD)
        op.flags = (op.flags & ~OFPI_HELD) | OFP_HOLD | OFP_CLAIM;
    if (op.flags & OFPI_PACKED) {
        op.flags &= ~OFPI_PACKED;
        transfer.iov = (const struct iovec *)(const void *)transfer.packed;
        transfer.iov_count = OFP_LAYOUT;
    }
    result = ofpi_offloaded_post(endpoint, receive->base.peer, &transfer);
    if (result < 0)
        ofpi_transfer_complete(&receive->base, -result, 0);
    else
        /* The receive was posted again as a new one, with its own copies. */
        ofpi_pending_free(receive);
}

void ofpi_offloaded_returned(struct ofp_endpoint *handle, const struct ofpi_unexpected *kept)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_pending *receive = NULL;
    int result = -ENOENT;

    if (!handle->info->offloads_matching || !handle->ops->cancel || endpoint->closing)
        return;
    /* A receive that can no longer be cancelled has matched an earlier message. */
    while (result == -ENOENT && (receive = find_next_receive(endpoint, kept, receive ? receive->sequence : 0)))
        result = handle->ops->cancel(handle, &receive->base);
    if (result == -EINPROGRESS) {
        OFPI_CHECK(receive->posted && ofpi_operation_is_receive(&receive->base.operation));
        receive->recalled = true;
    }
    if (!result)
        ofpi_offloaded_post_again(receive);
}

void ofpi_offloaded_match_again(struct ofpi_endpoint *endpoint)
{
    struct ofp_list *order = &endpoint->receive_context->unexpected.order, *node = order->next;

    while (node != order) {
        struct ofp_list *following = node->next;

        ofpi_offloaded_returned(&endpoint->base, OFP_CONTAINER_OF(node, struct ofpi_unexpected, order));
        node = following;
    }
}

void ofpi_offloaded_receive_complete(struct ofp_pending *base, const struct ofp_message *message,
                                     const struct ofp_offloaded *offloaded)
{
    struct ofpi_pending *pending = (struct ofpi_pending *)base;
    struct ofpi_endpoint *endpoint = pending->endpoint;
    const struct ofp_operation *op = &base->operation;
    /* Read now: the pending may be freed below. */
    bool recalled = pending->recalled;
    struct ofp_offloaded end = *offloaded;
    uint64_t flags;
    struct ofp_completion completion;

    if (__builtin_expect(!message || end.error == ECANCELED, 0)) {
        ofpi_transfer_complete(base, offloaded->error, offloaded->provider_error);
        return;
    }
    if (__builtin_expect(op->flags & (OFPI_HELD | OFP_PEEK), 0) && ofpi_offloaded_found(pending, message, &end))
        return;
    completion = (struct ofp_completion){
        .context = op->context,
        .flags = ofpi_row_of_operation(op)->completed | end.flags,
        .length = message->length,
        .buffer_offset = end.buffer_offset,
        .tag = message->tag,
        .source = message->source,
        .error = end.error,
        .provider_error = end.provider_error,
    };
    if (message->has_data) {
        completion.flags |= OFP_COMPLETED_REMOTE_CQ_DATA;
        completion.data = message->data;
    }
    if (op->flags & OFP_MULTI_RECV && !end.more)
        completion.flags |= OFP_COMPLETED_MULTI_RECV;
    flags = op->flags;
    if (__builtin_expect(flags & OFPI_PACKED, 0))
        ofpi_packed_scatter(&base->transfer, end.error);
    /* Free the receive first: an owner that has abandoned it returns the message, which must not match this receive. */
    if (!end.more)
        ofpi_pending_free(pending);
    ofpi_message_complete(&endpoint->base, flags, message, &completion);
    /* The recalled receive matched another message. Match the returned message with the next receive. */
    if (__builtin_expect(recalled, 0))
        ofpi_offloaded_match_again(endpoint);
}
