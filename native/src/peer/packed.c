/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer/packed.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/page.h"
#include "object/operation.h"
#include "ofipy/iov.h"

char *ofpi_packed_allocate(const struct ofp_transfer *transfer)
{
    /* At least one byte: malloc(0) may return NULL, which would look like an error. */
    char *buffer = malloc(transfer->length ? transfer->length : 1);

    OFPI_CHECK(transfer->iov_count == OFP_LAYOUT);
    if (buffer && transfer->op->op != OFP_READ)
        ofp_layout_gather(ofp_layout_of_iov(transfer->iov), 0, buffer, transfer->length);
    return buffer;
}

int ofpi_packed_receive_post(struct ofpi_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    static struct ofp_region *const unregistered[1];
    struct ofp_operation op = *transfer->op;
    struct iovec buffer = {ofpi_packed_allocate(transfer), transfer->length};
    struct ofp_transfer packed = *transfer;
    int result;

    if (!buffer.iov_base)
        return -ENOMEM;
    op.flags |= OFPI_PACKED;
    packed.op = &op;
    packed.iov = &buffer;
    packed.iov_count = 1;
    packed.regions = unregistered;
    packed.packed = ofp_layout_of_iov(transfer->iov);
    result = endpoint->base.ops->post(&endpoint->base, peer, &packed);
    if (result < 0)
        free(buffer.iov_base);
    else
        endpoint->counts->packed++;
    return result;
}

void ofpi_packed_scatter(const struct ofp_transfer *transfer, int error)
{
    const struct ofp_operation *op = transfer->op;
    bool filled = op->op == OFP_READ ? !error : ofpi_operation_is_receive(op) && error != ECANCELED;

    OFPI_CHECK(op->flags & OFPI_PACKED && transfer->packed);
    if (filled)
        ofp_layout_scatter(transfer->packed, 0, transfer->iov[0].iov_base, transfer->length);
}
