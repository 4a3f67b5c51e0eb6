/* SPDX-License-Identifier: BSD-3-Clause */
/* The payload that a connection is receiving: its destination and progress. */
#include "stream/inbound.h"

#include <stdlib.h>

#include "ofipy/iov.h"
#include "stream/access.h"

void tcp_inbound_start(struct tcp_connection *connection, const struct tcp_header *header, struct ofp_receive *receive)
{
    struct tcp_inbound *in = &connection->in;

    in->op = header->op;
    in->flags = header->flags;
    in->left = header->payload;
    in->offset = 0;
    in->target = receive ? TCP_TARGET_RECEIVE : TCP_TARGET_NONE;
    in->space = receive ? receive->length : 0;
    in->receive = receive;
    in->refused = 0;
}

void tcp_inbound_discard(struct tcp_connection *connection)
{
    struct tcp_inbound *in = &connection->in;

    if (in->target == TCP_TARGET_WRITE)
        tcp_accesses_release(in->accesses);
    if (in->target == TCP_TARGET_ATOMIC)
        free(in->operands);
    in->target = TCP_TARGET_NONE;
    in->space = 0;
}

static uint32_t fill_read_iov(const struct tcp_inbound *in, struct iovec *iov, uint32_t space)
{
    const struct ofp_transfer *transfer = &in->pending->transfer;
    struct iovec result = {transfer->result, transfer->length};

    if (ofp_operation_is(in->pending->operation.op, OFP_ATOMIC_KIND))
        return ofp_iov_cut(iov, space, &result, 1, in->offset, OFP_IOV_ALL);
    return ofp_iov_cut(iov, space, transfer->iov, transfer->iov_count, in->offset, OFP_IOV_ALL);
}

/* Describe the destination of the bytes that are missing, in at most `space` pieces. -1: the region was closed. */
static int fill_target_iov(const struct tcp_inbound *in, struct iovec *iov, uint32_t space)
{
    switch (in->target) {
    case TCP_TARGET_RECEIVE:
        return (int)ofp_iov_cut(iov, space, in->receive->iov, in->receive->iov_count, in->offset, OFP_IOV_ALL);
    case TCP_TARGET_READ:
        return (int)fill_read_iov(in, iov, space);
    case TCP_TARGET_ATOMIC:
        iov[0] = (struct iovec){in->operands->bytes + in->offset, in->space - in->offset};
        return 1;
    case TCP_TARGET_WRITE:
        return tcp_accesses_fill_iov(in->accesses, in->offset, iov, space);
    default:
        return 0;
    }
}

const struct ofp_layout *tcp_inbound_get_layout(const struct tcp_inbound *in)
{
    if (in->target == TCP_TARGET_RECEIVE && in->receive->iov_count == OFP_LAYOUT)
        return ofp_layout_of_iov(in->receive->iov);
    if (in->target == TCP_TARGET_READ && in->pending->transfer.iov_count == OFP_LAYOUT &&
        !ofp_operation_is(in->pending->operation.op, OFP_ATOMIC_KIND))
        return ofp_layout_of_iov(in->pending->transfer.iov);
    return NULL;
}

uint64_t tcp_inbound_fill_iov(const struct tcp_inbound *in, struct iovec *iov, uint32_t space, uint32_t *count)
{
    uint64_t left = in->space > in->offset ? in->space - in->offset : 0, sum = 0;
    int places;

    *count = 0;
    if (!left || !in->left)
        return 0;
    if (left > in->left)
        left = in->left;
    /* Bytes for a layout are read into the scratch buffer, and copied from there. */
    if (TCP_UNLIKELY(tcp_inbound_get_layout(in) != NULL))
        return 0;
    places = fill_target_iov(in, iov, space);
    /* Without valid memory the payload is discarded. */
    *count = places > 0 ? (uint32_t)places : 0;
    for (uint32_t i = 0; i < *count; i++) {
        if (iov[i].iov_len > left - sum)
            iov[i].iov_len = left - sum;
        sum += iov[i].iov_len;
        if (sum == left)
            *count = i + 1;
    }
    return sum;
}
