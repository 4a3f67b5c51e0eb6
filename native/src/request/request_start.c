/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: an operation with its completion in place of a queue entry.
 *
 * A request belongs to its domain and its slot returns to the domain's free list when it is both finished and released.
 * A finishing request stores its state last, so that other threads can read the state without the lock.
 */
#include "request/request_start.h"

#include <errno.h>

#include "base/check.h"
#include "completion/request_many.h"
#include "completion/request_slots.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "object/owner.h"
#include "ofipy/request.h"
#include "operation/post.h"
#include "progress/progress.h"
#include "progress/wait.h"

static bool has_transmit_space(const void *argument)
{
    const struct ofpi_endpoint *endpoint = argument;

    /* A closing endpoint sets `refuses`, so that threads which wait for space leave. */
    return endpoint->in_flight < endpoint->tx_size || endpoint->refuses;
}

static int post_with_space(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, int64_t timeout)
{
    int result = -EAGAIN;

    while (result == -EAGAIN) {
        bool expired;

        endpoint->waiting_for_room++;
        result = ofpi_domain_wait(endpoint->domain, has_transmit_space, endpoint, timeout, &expired);
        OFPI_CHECK(ofpi_domain_is_held(endpoint->domain) && endpoint->waiting_for_room);
        endpoint->waiting_for_room--;
        if (result <= 0)
            return result ? result : -EAGAIN;
        if (endpoint->refuses)
            return -ECANCELED;
        result = ofpi_endpoint_post(endpoint, op);
    }
    return result;
}

int ofpi_request_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, uint32_t how, int64_t timeout)
{
    int result = ofpi_endpoint_post(endpoint, op);

    /* A collective needs no space in the transmit queue, but a place in its group. */
    if (__builtin_expect(result != -EAGAIN, 1) || ofpi_operation_has_trait(op, OFP_OF_GROUP))
        return result;
    /* For a caller that must not wait, such as an event loop: the operation waits in the backlog instead. */
    if (how & OFP_START_BEYOND) {
        endpoint->posts_beyond = true;
        result = ofpi_endpoint_post(endpoint, op);
        endpoint->posts_beyond = false;
    }
    return result == -EAGAIN && timeout ? post_with_space(endpoint, op, timeout) : result;
}

static ofp_request_t start_request(struct ofpi_endpoint *endpoint, struct ofp_operation *op, uint32_t how,
                                   int64_t timeout)
{
    struct ofp_request *request = ofpi_request_allocate(endpoint);
    int result;

    if (!request)
        return -ENOMEM;
    op->context = (uint64_t)(uintptr_t)request;
    op->flags |= OFPI_REQUEST;
    if (op->flags & OFP_MULTI_RECV)
        ofpi_request_many_start(request);
    result = ofpi_request_post(endpoint, op, how, timeout);
    /* A send that has completed without error needs no request. */
    if (result == 0 &&
        (ofpi_operation_is_receive(op) || !ofpi_request_is_finished(request) || request->completion.error))
        return ofpi_handle_of_request(request);
    ofpi_request_free(request);
    return result;
}

ofp_request_t ofp_request_start(struct ofp_endpoint *base, const struct ofp_operation *operation, uint32_t how,
                                int64_t timeout)
{
    struct ofpi_endpoint *handle = (struct ofpi_endpoint *)base;
    struct ofpi_domain *domain = handle->domain;
    struct ofp_operation op = *operation;
    ofp_request_t result;

    if (!ofpi_operation_is_known(&op))
        return -EINVAL;
    if (!ofpi_operation_is_receive(&op))
        op.flags = ofpi_send_flags(handle, &op);
    result = ofpi_domain_enter_as(domain, how & OFP_START_AT_ONCE);
    if (result)
        return result;
    result = start_request(handle->behind, &op, how, timeout);
    ofpi_domain_leave(domain);
    return result;
}
