/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: an operation with its completion in place of a queue entry.
 *
 * A request belongs to its domain and its slot returns to the domain's free list when it is both finished and released.
 * The state is stored last when it finishes, so that other threads may look at it without the lock.
 */
#include <errno.h>

#include "domain.h"

void ofpi_request_finish(struct ofp_request *request, const struct ofp_completion *completion)
{
    OFPI_CHECK(request->many || ofp_load_relaxed(&request->state) == OFPI_REQUEST_RUNNING);
    if (__builtin_expect(request->many, 0) && !ofpi_request_many_finish(request, completion))
        return;
    request->completion = *completion;
    /* Pairs with the load-acquire in ofp_request_finished: the completion is there when the state says so. */
    ofp_store_release(&request->state, OFPI_REQUEST_FINISHED);
    if (request->released) {
        ofpi_request_end_released(request);
    } else if (request->notify && !ofp_list_linked(&request->node)) {
        /* One that has finished before, such as with a message set aside, may still be in the list. */
        struct ofp_cq *cq = request->endpoint->rx_cq ? request->endpoint->rx_cq : request->endpoint->tx_cq;

        ofp_list_append(&cq->finished, &request->node);
        ofpi_cq_notify(cq);
    }
}

/* ---------------------------------------------------------------------------------------------------------- start */

static bool has_room(const void *argument)
{
    const struct ofpi_endpoint *endpoint = argument;

    return endpoint->in_flight < endpoint->tx_size || endpoint->closing;
}

static int post_with_room(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, int64_t timeout)
{
    int result = -EAGAIN;

    while (result == -EAGAIN) {
        bool expired;

        endpoint->waiting_for_room++;
        result = ofpi_wait(endpoint->domain, has_room, endpoint, timeout, &expired);
        endpoint->waiting_for_room--;
        if (result <= 0)
            return result ? result : -EAGAIN;
        if (endpoint->closing)
            return -ECANCELED;
        result = ofpi_endpoint_post(endpoint, op);
    }
    return result;
}

int ofpi_request_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, uint32_t how, int64_t timeout)
{
    int result = ofpi_endpoint_post(endpoint, op);

    if (__builtin_expect(result != -EAGAIN, 1))
        return result;
    if (how & OFP_START_BEYOND) {
        endpoint->posts_beyond = true;
        result = ofpi_endpoint_post(endpoint, op);
        endpoint->posts_beyond = false;
    }
    return result == -EAGAIN && timeout ? post_with_room(endpoint, op, timeout) : result;
}

static ofp_request_t request_start(struct ofpi_endpoint *endpoint, struct ofp_operation *op, uint32_t how,
                                   int64_t timeout)
{
    struct ofp_request *request = ofpi_request_take(endpoint);
    int result;

    if (!request)
        return -ENOMEM;
    op->context = (uint64_t)(uintptr_t)request;
    op->flags |= OFPI_REQUEST;
    if (op->flags & OFP_MULTI_RECV)
        ofpi_request_many_start(request);
    result = ofpi_request_post(endpoint, op, how, timeout);
    /* A send that is over already needs no request. */
    if (result == 0 &&
        (ofpi_operation_is_receive(op) || !ofpi_request_is_finished(request) || request->completion.error))
        return ofpi_request_handle(request);
    ofpi_request_give(request);
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
    result = request_start(handle->behind, &op, how, timeout);
    ofpi_domain_leave(domain);
    return result;
}

/* ------------------------------------------------------------------------------------------------- look, wait, take */

static int result_of(const struct ofp_request *request) { return request->completion.error ? 2 : 1; }

int ofp_request_finished(ofp_request_t handle)
{
    const struct ofp_request *request = ofpi_request_find(handle);
    int result;

    if (!request)
        return -ESTALE;
    /* Pairs with the store-release in ofpi_request_finish. */
    if (ofp_load_acquire(&request->state) != OFPI_REQUEST_FINISHED)
        return 0;
    result = result_of(request);
    return ofpi_request_find(handle) ? result : -ESTALE;
}

struct run {
    const struct ofp_request *request;
    uint32_t number;
};

/* Also when somebody else took its completion: the slot is idle then, or serves another operation by now. */
static bool is_over(const void *argument)
{
    const struct run *run = argument;

    return run->request->runs != run->number || ofp_load_relaxed(&run->request->state) != OFPI_REQUEST_RUNNING;
}

int ofpi_request_await(struct ofp_request *request, int64_t timeout)
{
    struct run run = {request, request->runs};
    bool expired;

    return ofpi_wait(request->domain, is_over, &run, timeout, &expired);
}

/* 1: it is finished, and still of this handle. */
static int wait_for(struct ofp_request *request, ofp_request_t handle, int64_t timeout)
{
    int result;

    if (__builtin_expect(ofp_load_relaxed(&request->state) == OFPI_REQUEST_IDLE, 0))
        return -EINVAL;
    result = ofpi_request_is_finished(request) ? 1 : ofpi_request_await(request, timeout);
    return result == 1 && ofpi_request_handle(request) != handle ? -ESTALE : result;
}

int ofp_request_wait(ofp_request_t handle, int64_t timeout)
{
    struct ofp_request *request;
    struct ofpi_domain *domain;
    int result = ofp_request_finished(handle);

    if (result)
        return result;
    result = ofpi_request_enter(handle, &request);
    if (result)
        return result;
    domain = request->domain;
    result = wait_for(request, handle, timeout);
    if (result == 1)
        result = result_of(request);
    ofpi_domain_leave(domain);
    return result;
}

static void take(struct ofp_request *request, struct ofp_completion *completion)
{
    *completion = request->completion;
    if (__builtin_expect(request->many, 0))
        ofpi_request_many_taken(request);
    else if (!request->prepared && !(completion->flags & OFP_COMPLETED_CLAIM))
        ofpi_request_give(request);
}

int ofp_request_take(ofp_request_t handle, int64_t timeout, struct ofp_completion *completion)
{
    struct ofp_request *request;
    struct ofpi_domain *domain;
    int result = ofpi_request_enter(handle, &request);

    if (result)
        return result;
    domain = request->domain;
    result = wait_for(request, handle, timeout);
    if (result == 1)
        take(request, completion);
    ofpi_domain_leave(domain);
    return result;
}

int ofp_request_take_finished(ofp_request_t handle, struct ofp_completion *completion)
{
    struct ofp_request *request = ofpi_request_find(handle);
    struct ofpi_domain *domain;
    int result;

    if (!request)
        return -ESTALE;
    if (ofp_load_relaxed(&request->state) != OFPI_REQUEST_FINISHED)
        return 0;
    domain = request->domain;
    result = ofpi_domain_enter_as(domain, true);
    if (result)
        return result == -ENOLCK ? 0 : result;
    if (ofpi_request_handle(request) != handle)
        result = -ESTALE;
    else if (ofpi_request_is_finished(request))
        result = 1;
    if (result == 1)
        take(request, completion);
    ofpi_domain_leave(domain);
    return result;
}

/* ------------------------------------------------------------------------------------------------------------ many */

struct many_condition {
    const ofp_request_t *requests;
    uint64_t count;
    uint64_t *finished; /* how many from the first on are known to have finished */
};

static bool is_finished_or_stale(ofp_request_t handle) { return ofp_request_finished(handle) != 0; }

static bool all_finished(const void *argument)
{
    const struct many_condition *condition = argument;

    while (*condition->finished < condition->count && is_finished_or_stale(condition->requests[*condition->finished]))
        ++*condition->finished;
    return *condition->finished == condition->count;
}

static bool any_finished(const void *argument)
{
    const struct many_condition *condition = argument;

    for (uint64_t i = 0; i < condition->count; i++)
        if (is_finished_or_stale(condition->requests[i]))
            return true;
    return false;
}

/* The one domain of those that are not stale; NULL: all are. -EXDEV: there are several. */
static int domain_of(const ofp_request_t *requests, uint64_t count, struct ofpi_domain **domain)
{
    *domain = NULL;
    for (uint64_t i = 0; i < count; i++) {
        const struct ofp_request *request = ofpi_request_find(requests[i]);

        if (request && *domain && request->domain != *domain)
            return -EXDEV;
        if (request)
            *domain = request->domain;
    }
    return 0;
}

int ofp_requests_wait(const ofp_request_t *requests, uint64_t count, bool all, int64_t timeout)
{
    uint64_t known = 0;
    struct many_condition condition = {requests, count, &known};
    struct ofpi_domain *domain;
    bool expired;
    int result = domain_of(requests, count, &domain);

    if (result || !domain)
        return result ? result : 1;
    result = ofpi_domain_enter(domain);
    if (result)
        return result;
    result = ofpi_wait(domain, all ? all_finished : any_finished, &condition, timeout, &expired);
    ofpi_domain_leave(domain);
    return result;
}

int ofp_request_notify(ofp_request_t handle)
{
    struct ofp_request *request;
    int result = ofpi_request_enter(handle, &request);

    if (result)
        return result == -ESTALE ? 1 : result;
    result = ofpi_request_is_finished(request);
    if (!result)
        request->notify = true;
    ofpi_domain_leave(request->domain);
    return result;
}
