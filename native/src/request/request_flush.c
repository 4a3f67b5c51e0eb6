/* SPDX-License-Identifier: BSD-3-Clause */
/* ofp_flush_request: which peers a flush is for. */
#include <errno.h>

#include "object/endpoint.h"
#include "ofipy/request.h"
#include "peer/connection.h"
#include "peer/peer_find.h"
#include "peer/peer_flush.h"
#include "progress/progress.h"

/* The peer that a caller named, NULL for all. An address without a peer object has had no operation yet. */
static int find_flushed_peer(struct ofpi_endpoint *endpoint, uint32_t index, struct ofpi_peer **peer)
{
    int error = 0;

    *peer = NULL;
    if (!(endpoint->info.caps & (OFP_CAP_RMA | OFP_CAP_ATOMIC)) || ofpi_endpoint_is_receive_only(endpoint))
        return -EOPNOTSUPP;
    if (!endpoint->av)
        return ofpi_connection_can_post(endpoint->connection) ? 0 : -ENOTCONN;
    if (index != OFP_PEER_ANY)
        *peer = ofpi_peer_get(endpoint, index, &error);
    return error;
}

ofp_request_t ofp_flush_request(struct ofp_endpoint *handle, uint32_t index)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_peer *peer;
    ofp_request_t result;
    int error = ofpi_endpoint_enter(endpoint);

    if (error)
        return error;
    endpoint = endpoint->behind;
    error = endpoint->refuses ? -ECANCELED : find_flushed_peer(endpoint, index, &peer);
    result = error ? error : ofpi_flush_start(endpoint, peer);
    ofpi_domain_leave(endpoint->domain);
    return result;
}
