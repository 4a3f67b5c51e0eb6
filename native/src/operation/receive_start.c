/* SPDX-License-Identifier: BSD-3-Clause */
#include "operation/receive_start.h"

#include <errno.h>

#include "base/address_vector.h"
#include "match/receive_post.h"
#include "object/endpoint.h"
#include "object/vector.h"
#include "operation/receive_offloaded.h"
#include "peer/peer_find.h"
#include "peer/peer_state.h"

/* A receive may name a source that has no peer object yet; the transport that matches itself needs one. */
int ofpi_receive_start(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    struct ofpi_peer *peer = NULL;
    bool shared = ofpi_endpoint_is_receive_only(endpoint);
    int error = 0;

    if (__builtin_expect(shared, 0)) {
        size_t length;

        if (op->peer != OFP_PEER_ANY && !ofpi_av_table_find_address(endpoint->av->table, op->peer, &length))
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
        ofpi_peer_mark_named(endpoint, peer);
    else if (__builtin_expect(shared && op->peer != OFP_PEER_ANY && error >= 0, 0))
        ofpi_receives_end_in_shared(endpoint, op->peer);
    return error;
}
