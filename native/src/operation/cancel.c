/* SPDX-License-Identifier: BSD-3-Clause */
/* Cancel an operation in the backlog, in the transport, or before its threshold. */
#include <errno.h>

#include "match/receive_post.h"
#include "object/endpoint.h"
#include "ofipy/ofp.h"
#include "operation/deferred.h"
#include "peer/peer_post.h"
#include "progress/progress.h"

int ofp_cancel(struct ofp_endpoint *handle, uint64_t context)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result = ofpi_endpoint_enter(endpoint);

    if (result)
        return result;
    endpoint = endpoint->behind;
    result = -ENOENT;
    if (endpoint->receive_context)
        result = ofpi_receive_cancel(endpoint->receive_context, &endpoint->base, context, 0);
    if (result == -ENOENT)
        result = ofpi_peer_cancel(endpoint, context, 0);
    if (result == -ENOENT)
        result = ofpi_works_cancel(endpoint, context);
    ofpi_domain_leave(endpoint->domain);
    return result;
}
