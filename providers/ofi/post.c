/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations: from a transfer of the core to a call of libfabric. Called under the domain's lock. */
#include <errno.h>
#include <stdlib.h>

#include "bridge.h"
#include "ofipy/iov.h"

static const struct {
    uint64_t ours, theirs;
} send_flags[] = {
    {OFP_REMOTE_CQ_DATA, LF_REMOTE_CQ_DATA},
    {OFP_MORE, LF_MORE},
    {OFP_FENCE, LF_FENCE},
    {OFP_TRANSMIT_COMPLETE, LF_TRANSMIT_COMPLETE},
    {OFP_DELIVERY_COMPLETE, LF_DELIVERY_COMPLETE},
    {OFP_MATCH_COMPLETE, LF_MATCH_COMPLETE},
};

#define LEVELS (LF_TRANSMIT_COMPLETE | LF_DELIVERY_COMPLETE | LF_MATCH_COMPLETE)
#define OWN_LEVELS (OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)

static uint64_t convert_flags(uint64_t flags)
{
    uint64_t result = LF_COMPLETION;

    if (__builtin_expect(!(flags & (OFP_REMOTE_CQ_DATA | OFP_MORE | OFP_FENCE | OWN_LEVELS)), 1))
        return result;
    for (size_t i = 0; i < sizeof(send_flags) / sizeof(send_flags[0]); i++)
        if (flags & send_flags[i].ours)
            result |= send_flags[i].theirs;
    return result;
}

static uint64_t address_of_peer(const struct ofp_peer *peer)
{
    return peer ? bridge_peer_of(peer)->address : LF_ADDR_UNSPEC;
}

static bool is_receive(uint16_t op) { return ofp_operation_is(op, OFP_RECEIVES); }

static bool is_remote(uint16_t op) { return ofp_operation_is(op, OFP_REMOTE); }

static bool is_atomic(uint16_t op) { return ofp_operation_is(op, OFP_ATOMIC_KIND); }

static bool is_tagged(uint16_t op) { return ofp_operation_row(op)->channel == OFP_CHANNEL_TAGGED; }

/* Whether the operation writes to local memory. */
static bool has_incoming_data(uint16_t op)
{
    return is_receive(op) || (ofp_operation_is(op, OFP_READS) && !is_atomic(op));
}

static bool needs_registration(const struct ofp_endpoint *endpoint)
{
    return bridge_domain_of(endpoint->domain)->info->domain_attr->mr_mode & LF_MR_LOCAL;
}

/* ---------------------------------------------------------------------------------------------------- short messages */

/*
 * Whether a message may be an inject, which costs no completion. Not if the caller requests a completion level, and not
 * the first message to a peer, since a failed inject is not reported.
 */
static bool can_inject(const struct bridge_endpoint *self, const struct ofp_peer *peer,
                       const struct ofp_transfer *transfer)
{
    return transfer->length <= self->inject_size && transfer->iov_count == 1 &&
           !(transfer->op->flags & (OWN_LEVELS | OFP_FENCE)) &&
           (transfer->op->flags & OFP_INJECT || bridge_peer_of(peer)->reached);
}

static int inject_message(const struct bridge_endpoint *self, const struct ofp_peer *peer,
                          const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    const struct iovec *iov = transfer->iov;
    uint64_t address = address_of_peer(peer);
    struct lf_ep *ep = self->ep;
    uint64_t data;
    bool has_data = bridge_message_has_data(self, peer, op, &data);
    ssize_t result;

    if (is_tagged(op->op))
        result = has_data ? ep->tagged->injectdata(ep, iov->iov_base, iov->iov_len, data, address, op->tag)
                          : ep->tagged->inject(ep, iov->iov_base, iov->iov_len, address, op->tag);
    else
        result = has_data ? ep->msg->injectdata(ep, iov->iov_base, iov->iov_len, data, address)
                          : ep->msg->inject(ep, iov->iov_base, iov->iov_len, address);
    return result ? -bridge_error_convert((int)result) : OFP_POST_DONE;
}

/* ------------------------------------------------------------------------------------------------------ all others */

static ssize_t call_message(const struct bridge_call *call, const struct ofp_transfer *transfer, uint64_t flags)
{
    struct lf_msg msg = {.iov = transfer->iov,
                         .descriptors = call->local,
                         .iov_count = transfer->iov_count,
                         .address = call->address,
                         .context = call->context,
                         .data = call->data};

    if (is_receive(transfer->op->op))
        return call->ep->msg->recvmsg(call->ep, &msg, LF_COMPLETION);
    return call->ep->msg->sendmsg(call->ep, &msg, flags);
}

static ssize_t call_tagged(const struct bridge_call *call, const struct ofp_transfer *transfer, uint64_t flags)
{
    const struct ofp_operation *op = transfer->op;
    struct lf_msg_tagged msg = {.iov = transfer->iov,
                                .descriptors = call->local,
                                .iov_count = transfer->iov_count,
                                .address = call->address,
                                .tag = op->tag,
                                .ignore = is_receive(op->op) ? op->ignore : 0,
                                .context = call->context,
                                .data = call->data};

    if (is_receive(op->op))
        return call->ep->tagged->recvmsg(call->ep, &msg, LF_COMPLETION);
    return call->ep->tagged->sendmsg(call->ep, &msg, flags);
}

static ssize_t call_libfabric(const struct bridge_call *call, const struct ofp_transfer *transfer, uint64_t flags)
{
    uint16_t op = transfer->op->op;

    if (is_remote(op))
        return bridge_call_remote(call, transfer, flags);
    return is_tagged(op) ? call_tagged(call, transfer, flags) : call_message(call, transfer, flags);
}

/*
 * Replace the user's memory by one piece: for an inject, whose memory is the caller's again after the call, and for
 * more pieces than libfabric accepts. Received data are scattered to the user's pieces in the end.
 */
static int gather_copy(struct bridge_block *block, const struct ofp_transfer *transfer, struct iovec *copy)
{
    block->copy = malloc(transfer->length ? transfer->length : 1);
    if (!block->copy)
        return -ENOMEM;
    *copy = (struct iovec){block->copy, transfer->length};
    block->scattered = has_incoming_data(transfer->op->op);
    if (!block->scattered)
        ofp_iov_gather(block->copy, transfer->iov, transfer->iov_count, 0, transfer->length);
    return 0;
}

/*
 * Whether libfabric injects the operation and yet reports its completion: RMA and atomics, and messages of connections.
 */
static bool is_injected(const struct bridge_endpoint *self, const struct ofp_peer *peer,
                        const struct ofp_transfer *transfer)
{
    uint16_t op = transfer->op->op;

    if (is_remote(op))
        return transfer->op->flags & OFP_INJECT && transfer->length <= self->inject_size;
    return self->connects && !is_receive(op) && can_inject(self, peer, transfer);
}

static bool needs_copy(const struct bridge_endpoint *self, const struct ofp_peer *peer,
                       const struct ofp_transfer *transfer)
{
    uint32_t limit = is_atomic(transfer->op->op) ? 1 : self->segment_limit;

    if (transfer->iov_count > limit)
        return true;
    return transfer->op->flags & OFP_INJECT && !is_injected(self, peer, transfer);
}

/*
 * Remove empty pieces: libfabric requires a descriptor for each piece, and an empty piece has none. False: all pieces
 * are empty.
 */
static bool remove_empty_pieces(struct ofp_transfer *transfer, struct iovec *iov, struct ofp_region **regions)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < transfer->iov_count; i++) {
        if (transfer->iov[i].iov_len) {
            iov[count] = transfer->iov[i];
            regions[count++] = transfer->regions[i];
        }
    }
    if (!count)
        return false;
    transfer->iov = iov;
    transfer->regions = regions;
    transfer->iov_count = count;
    return true;
}

/* The level that a send needs so that its message leaves after the completion. */
static uint64_t choose_added_level(const struct ofp_endpoint *endpoint, const struct ofp_operation *op)
{
    if (!bridge_domain_of(endpoint->domain)->completes_early || is_receive(op->op) || is_remote(op->op))
        return 0;
    return convert_flags(op->flags) & LEVELS ? 0 : LF_TRANSMIT_COMPLETE;
}

static int start_operation(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer,
                           struct bridge_block *block)
{
    static struct ofp_region *const no_region = NULL;
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct bridge_call call = {.ep = self->ep, .address = address_of_peer(peer), .context = block};
    bool has_data = peer && bridge_message_has_data(self, peer, transfer->op, &call.data);
    uint64_t flags = convert_flags(transfer->op->flags) | (has_data ? LF_REMOTE_CQ_DATA : 0) |
                     (is_injected(self, peer, transfer) ? LF_INJECT : 0) | choose_added_level(endpoint, transfer->op) |
                     bridge_remote_choose_flags(endpoint, transfer);
    struct ofp_transfer copied = *transfer;
    struct ofp_region *regions[OFP_SEGMENT_LIMIT];
    struct iovec copy, pieces[OFP_SEGMENT_LIMIT];
    int result = 0;

    /* Some providers treat a receive of no bytes, and its message, as the end of the connection. */
    if (!transfer->length && is_receive(transfer->op->op)) {
        copy = (struct iovec){&block->spare, 1};
        copied.iov = &copy;
        copied.iov_count = 1;
        copied.regions = &no_region;
    } else if (needs_copy(self, peer, transfer)) {
        result = gather_copy(block, transfer, &copy);
        if (result)
            return result;
        copied.iov = &copy;
        copied.iov_count = 1;
        copied.regions = &no_region;
    }
    call.local = call.descriptors;
    if (needs_registration(endpoint)) {
        if ((flags & LF_INJECT && !is_remote(transfer->op->op)) || !remove_empty_pieces(&copied, pieces, regions))
            call.local = NULL;
        else
            result = bridge_descriptors_prepare(endpoint, &copied, block, call.descriptors);
        if (result)
            return result;
    }
    result = -bridge_error_convert((int)call_libfabric(&call, &copied, flags));
    if (!result && is_remote(transfer->op->op))
        bridge_remote_posted(peer, transfer, flags);
    return result;
}

/*
 * In the memory that libfabric mistakes for a receive for any source (confuses_sources), the tag is all ones and the
 * ignored bits are a pointer. So a message ends the process if its tag has ones wherever a pointer has none, at least
 * in its upper 16 bits; untagged messages may in any case.
 */
static bool is_endangered(const struct ofp_operation *op)
{
    return !is_tagged(op->op) || (op->tag | op->ignore) >> 48 == 0xffff;
}

/* Whether a receive must not be posted beside the posted ones. */
static bool is_confusing(const struct ofp_endpoint *endpoint, const struct ofp_peer *peer,
                         const struct ofp_operation *op)
{
    const uint32_t *receives = bridge_endpoint_of(endpoint)->receives[is_tagged(op->op)];

    if (!bridge_domain_of(endpoint->domain)->confuses_sources)
        return false;
    if (peer ? !is_endangered(op) || !receives[BRIDGE_FOR_ANY] : !receives[BRIDGE_ENDANGERED])
        return false;
    bridge_core->log(OFP_LOG_WARNING, BRIDGE_NAME,
                     "%s of this libfabric cannot have receives for one source and for any source posted together",
                     endpoint->info->provider);
    return true;
}

/* Set and count the operation of a block. */
static void mark_block(struct bridge_endpoint *self, struct bridge_block *block, struct ofp_peer *peer,
                       const struct ofp_operation *op)
{
    OFP_CHECK(block->sources == BRIDGE_NO_RECEIVE && !block->is_send);
    block->is_send = !is_receive(op->op);
    block->peer = peer;
    if (!block->is_send) {
        block->tagged = is_tagged(op->op);
        block->sources = !peer ? BRIDGE_FOR_ANY : is_endangered(op) ? BRIDGE_ENDANGERED : BRIDGE_FOR_ONE;
        self->receives[block->tagged][block->sources]++;
    } else {
        self->sends++;
        bridge_peer_of(peer)->sends++;
    }
}

static int retain_operation(struct ofp_endpoint *endpoint, struct bridge_block *block,
                            const struct ofp_transfer *transfer)
{
    block->pending = ofp_transfer_retain(endpoint, block->peer, transfer);
    if (!block->pending)
        return -ENOMEM;
    block->id = block->pending->id;
    block->pending->provider_data[0] = (uintptr_t)block;
    return 0;
}

/*
 * Post a transfer as libfabric gets it, which the core ends as `retained`. libfabric reports completions only when its
 * queue is read, so the operation can be retained after the call.
 */
static int post_operation(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer,
                          const struct ofp_transfer *retained)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct bridge_block *block = bridge_block_allocate(self);
    int result;

    if (!block)
        return -ENOMEM;
    result = start_operation(endpoint, peer, transfer, block);
    if (result) {
        bridge_block_free(self, block);
        return result;
    }
    mark_block(self, block, peer, transfer->op);
    /* The memory belongs to the user again; only the end of the connection waits for the send. */
    if (self->connects && block->is_send && !is_remote(transfer->op->op) && is_injected(self, peer, transfer)) {
        block->is_completed = true;
        bridge_peer_of(peer)->completed++;
        return OFP_POST_DONE;
    }
    /* Out of memory: libfabric already has the operation, and its completion will find no pending operation. */
    result = retain_operation(endpoint, block, retained);
    return result ? result : OFP_POST_PENDING;
}

int bridge_receive_defer(struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer, struct bridge_block **kept)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct bridge_block *block;
    int result;

    if (transfer->op->flags & (OFP_MULTI_RECV | OFP_PEEK))
        return -EOPNOTSUPP;
    block = bridge_block_allocate(self);
    if (!block)
        return -ENOMEM;
    mark_block(self, block, NULL, transfer->op);
    result = retain_operation(endpoint, block, transfer);
    if (result)
        bridge_block_free(self, block);
    else
        *kept = block;
    return result;
}

void bridge_receive_start(struct ofp_endpoint *endpoint, struct bridge_block *block)
{
    int result;

    bridge_block_release(block);
    result = start_operation(endpoint, block->peer, &block->pending->transfer, block);
    if (result)
        bridge_receive_failed(endpoint, block, -result);
}

/* libfabric does not peek at untagged messages. */
static int post_peek(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    const struct ofp_operation *op = transfer->op;
    struct lf_msg_tagged msg = {.address = address_of_peer(peer), .tag = op->tag, .ignore = op->ignore};
    struct bridge_block *block;
    int result;

    if (!is_tagged(op->op) || !bridge_domain_of(endpoint->domain)->peeks)
        return -EOPNOTSUPP;
    block = bridge_block_allocate(self);
    if (!block)
        return -ENOMEM;
    block->pending = ofp_transfer_retain(endpoint, peer, transfer);
    if (!block->pending) {
        bridge_block_free(self, block);
        return -ENOMEM;
    }
    block->peer = peer;
    block->id = block->pending->id;
    msg.context = block;
    result = bridge_error_convert((int)self->ep->tagged->recvmsg(self->ep, &msg, LF_PEEK | LF_COMPLETION));
    if (result)
        bridge_receive_failed(endpoint, block, result);
    else
        bridge_peek_read(endpoint, block);
    return OFP_POST_PENDING;
}

/* A provider whose wire format has no space for remote CQ data would omit them; one with less space would send a part. */
static int check_data(const struct ofp_endpoint *endpoint, const struct ofp_operation *op)
{
    uint64_t space = endpoint->info->cq_data_size;

    if (!space)
        return -EOPNOTSUPP;
    return space >= sizeof(op->data) || op->data >> 8 * space == 0 ? 0 : -EOVERFLOW;
}

/* Whether libfabric supports the completion level of the operation. */
static bool has_level(const struct ofp_endpoint *endpoint, uint64_t flags)
{
    return !(flags & OWN_LEVELS) || !(convert_flags(flags) & LEVELS & ~bridge_domain_of(endpoint->domain)->levels);
}

static int post_receive(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    if (transfer->op->flags & OFP_MULTI_RECV)
        return -EOPNOTSUPP;
    if (transfer->op->flags & OFP_PEEK)
        return post_peek(endpoint, peer, transfer);
    if (is_confusing(endpoint, peer, transfer->op))
        return -EOPNOTSUPP;
    return post_operation(endpoint, peer, transfer, transfer);
}

static int post_to_libfabric(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    uint16_t op = transfer->op->op;

    if (is_receive(op))
        return post_receive(endpoint, peer, transfer);
    if (is_atomic(op)) {
        int result = bridge_atomic_check(endpoint, transfer);

        if (result)
            return result;
    }
    if (transfer->op->flags & OFP_REMOTE_CQ_DATA) {
        int result = check_data(endpoint, transfer->op);

        if (result)
            return result;
    }
    if (!has_level(endpoint, transfer->op->flags))
        return -EOPNOTSUPP;
    if (!is_remote(op) && !self->connects && can_inject(self, peer, transfer) &&
        !bridge_domain_of(endpoint->domain)->completes_early)
        return inject_message(self, peer, transfer);
    return post_operation(endpoint, peer, transfer, transfer);
}

/* An internal message is no inject: others wait for it, and the failure of an inject is not reported. */
static int post_beside_groups(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofp_operation op;
    int result = bridge_tag_convert(bridge_endpoint_of(endpoint)->internal_bit, transfer->op, &op);
    struct ofp_transfer converted;

    if (result < 0)
        return result;
    if (result == BRIDGE_TAG_SAME)
        return post_to_libfabric(endpoint, peer, transfer);
    converted = *transfer;
    converted.op = &op;
    if (result == BRIDGE_TAG_INTERNAL)
        return post_operation(endpoint, peer, &converted, transfer);
    return post_to_libfabric(endpoint, peer, &converted);
}

/* Whether an operation of an endpoint with an `internal_bit` may be another one at libfabric. */
static bool needs_conversion(const struct ofp_operation *op, uint64_t bit)
{
    return (op->tag | op->ignore) & bit || ofp_operation_row(op->op)->channel == OFP_CHANNEL_INTERNAL;
}

int bridge_operation_post(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    uint64_t bit = bridge_endpoint_of(endpoint)->internal_bit;

    if (__builtin_expect(bit && needs_conversion(transfer->op, bit), 0))
        return post_beside_groups(endpoint, peer, transfer);
    return post_to_libfabric(endpoint, peer, transfer);
}
