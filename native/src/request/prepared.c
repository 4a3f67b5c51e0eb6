/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepared operations (MPI: persistent): a request that stores its record and can be started repeatedly. */
#include <errno.h>
#include <stdlib.h>

#include "completion/request_slots.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "object/owner.h"
#include "ofipy/request.h"
#include "operation/resolve.h"
#include "progress/progress.h"
#include "request/request_start.h"

ofp_request_t ofp_prepare(struct ofp_endpoint *handle, const struct ofp_operation *operation)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofp_operation *record = malloc(sizeof(*record));
    struct ofpi_resolved resolved;
    struct ofp_request *request = NULL;
    int result = record ? ofpi_endpoint_enter(endpoint) : -ENOMEM;

    if (result) {
        free(record);
        return result;
    }
    *record = *operation;
    result = ofpi_operation_is_known(record) && !(record->flags & OFP_MULTI_RECV) ? 0 : -EINVAL;
    if (!result && !ofpi_operation_is_receive(record))
        record->flags = ofpi_send_flags(endpoint, record);
    endpoint = endpoint->behind;
    if (!result)
        result = ofpi_operation_check(endpoint, record, &resolved);
    if (!result) {
        request = ofpi_request_allocate(endpoint);
        result = request ? 0 : -ENOMEM;
    }
    if (request) {
        request->prepared = record;
        record->flags |= OFPI_REQUEST;
        record->context = (uint64_t)(uintptr_t)request;
        ofp_store_relaxed(&request->state, OFPI_REQUEST_IDLE);
    } else {
        free(record);
    }
    ofpi_domain_leave(endpoint->domain);
    return request ? ofpi_handle_of_request(request) : result;
}

static int start_prepared(struct ofp_request *request, uint32_t how, int64_t timeout)
{
    uint32_t before = ofp_load_relaxed(&request->state);
    int result;

    if (!request->prepared)
        return -EINVAL;
    if (before == OFPI_REQUEST_RUNNING)
        return -EBUSY;
    /* Waiters of the previous run detect its end by this number. */
    request->runs++;
    /* Set the state before the post, which may complete the request. */
    ofp_store_relaxed(&request->state, OFPI_REQUEST_RUNNING);
    result = request->kept ? request->kept->start(request->kept)
                           : ofpi_request_post(request->endpoint, request->prepared, how, timeout);
    if (result)
        ofp_store_relaxed(&request->state, before);
    return result;
}

int ofp_start(ofp_request_t handle, uint32_t how, int64_t timeout)
{
    int result = ofp_start_many(&handle, 1, how, timeout);

    return result == 1 ? 0 : result;
}

/* The lock stays held between requests of the same domain. */
int ofp_start_many(const ofp_request_t *requests, uint64_t count, uint32_t how, int64_t timeout)
{
    struct ofpi_domain *domain = NULL;
    uint64_t started = 0;
    int result = 0;

    while (started < count) {
        struct ofp_request *request = ofpi_request_find(requests[started]);

        result = request ? 0 : -ESTALE;
        if (request && request->domain != domain) {
            if (domain)
                ofpi_domain_leave(domain);
            domain = request->domain;
            result = ofpi_domain_enter_as(domain, how & OFP_START_AT_ONCE);
            if (result)
                domain = NULL;
        }
        /* The request was found without the lock: the handle may be stale by now. */
        if (!result && ofpi_handle_of_request(request) != requests[started])
            result = -ESTALE;
        if (!result)
            result = start_prepared(request, how, timeout);
        if (result)
            break;
        started++;
    }
    if (domain)
        ofpi_domain_leave(domain);
    return started ? (int)started : result;
}
