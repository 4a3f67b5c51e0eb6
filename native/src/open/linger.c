/* SPDX-License-Identifier: BSD-3-Clause */
/* Linger: posted operations leave before their endpoint closes. */
#include <errno.h>
#include <string.h>

#include "collective/group_close.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "ofipy/ofp.h"
#include "operation/deferred.h"
#include "peer/unsent.h"
#include "progress/progress.h"
#include "progress/wait.h"

/* 0 with the lock held; -ECANCELED once the endpoint is retired. */
static int enter_unretired(struct ofpi_endpoint *endpoint)
{
    int result = ofpi_domain_enter(endpoint->domain);

    if (!result && endpoint->closing && !endpoint->draining) {
        ofpi_domain_refuse(endpoint->domain);
        result = -ECANCELED;
    }
    return result;
}

int ofp_endpoint_linger(struct ofp_endpoint *handle, uint32_t refuse)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_unsent waiting = {0};
    int result = enter_unretired(endpoint);

    if (result)
        return result;
    endpoint->lingers = true;
    if (refuse && !endpoint->refuses) {
        endpoint->refuses = endpoint->stopped = true;
        /* Wake the threads that wait for space, so that they return. */
        if (endpoint->waiting_for_room)
            ofpi_domain_wake(endpoint->domain);
    }
    ofpi_unsent_count_pending(endpoint, true, &waiting);
    ofpi_works_count_due(endpoint, &waiting);
    result = waiting.count != 0 || ofpi_groups_are_needed(endpoint);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

int ofp_endpoint_drain(struct ofp_endpoint *handle)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result = enter_unretired(endpoint);

    if (result)
        return result;
    endpoint->lingers = endpoint->refuses = endpoint->stopped = endpoint->closing = endpoint->draining = true;
    if (endpoint->base.ops->drain)
        result = endpoint->base.ops->drain(handle) == -EAGAIN;
    ofpi_domain_leave(endpoint->domain);
    return result;
}

/* After retiring nothing is pending, and the domain may be retired too: return the stored result. */
int ofp_endpoint_unsent(struct ofp_endpoint *handle, struct ofp_unsent *unsent)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_domain *domain = endpoint->domain;
    int result = ofpi_domain_enter_as(domain, true);
    struct ofpi_unsent total;

    /* ECANCELED: the domain is retired. */
    if (result && result != -ECANCELED)
        return result;
    total = endpoint->unsent;
    if (!result) {
        ofpi_unsent_count_pending(endpoint, false, &total);
        if (!endpoint->closing || endpoint->draining)
            ofpi_works_count_due(endpoint, &total);
        ofpi_domain_leave(domain);
    }
    *unsent = (struct ofp_unsent){total.count, total.operations, total.peer_count};
    return 0;
}

int ofp_endpoint_unsent_peer(const struct ofp_endpoint *handle, uint64_t number, void *address, size_t *length)
{
    const struct ofpi_unsent *unsent = &((const struct ofpi_endpoint *)handle)->unsent;
    size_t room = *length;

    if (number >= unsent->peer_count)
        return -ENOENT;
    *length = unsent->peers[number].length;
    if (room < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, unsent->peers[number].address, *length);
    return 0;
}
