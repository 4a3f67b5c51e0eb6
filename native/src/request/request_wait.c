/* SPDX-License-Identifier: BSD-3-Clause */
/* Test requests, wait for them, and read their completions. */
#include "request/request_wait.h"

#include <errno.h>

#include "completion/request_many.h"
#include "completion/request_slots.h"
#include "object/domain.h"
#include "ofipy/request.h"
#include "progress/progress.h"
#include "progress/wait.h"

static int result_of_request(const struct ofp_request *request) { return request->completion.error ? 2 : 1; }

int ofp_request_finished(ofp_request_t handle)
{
    const struct ofp_request *request = ofpi_request_find(handle);
    int result;

    if (!request)
        return -ESTALE;
    /* Pairs with the store-release in ofpi_request_finish. */
    if (ofp_load_acquire(&request->state) != OFPI_REQUEST_FINISHED)
        return 0;
    result = result_of_request(request);
    /* The result is this operation's only if the handle is still valid. */
    return ofpi_request_find(handle) ? result : -ESTALE;
}

struct run {
    const struct ofp_request *request;
    uint32_t number;
};

/* Also true when another thread read the completion: the slot is idle then, or serves another operation. */
static bool is_run_over(const void *argument)
{
    const struct run *run = argument;

    return run->request->runs != run->number || ofp_load_relaxed(&run->request->state) != OFPI_REQUEST_RUNNING;
}

int ofpi_request_await(struct ofp_request *request, int64_t timeout)
{
    struct run run = {request, request->runs};
    bool expired;

    return ofpi_domain_wait(request->domain, is_run_over, &run, timeout, &expired);
}

/* 1: the request is finished and the handle still valid. */
static int wait_for_request(struct ofp_request *request, ofp_request_t handle, int64_t timeout)
{
    int result;

    if (__builtin_expect(ofp_load_relaxed(&request->state) == OFPI_REQUEST_IDLE, 0))
        return -EINVAL;
    result = ofpi_request_is_finished(request) ? 1 : ofpi_request_await(request, timeout);
    return result == 1 && ofpi_handle_of_request(request) != handle ? -ESTALE : result;
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
    result = wait_for_request(request, handle, timeout);
    if (result == 1)
        result = result_of_request(request);
    ofpi_domain_leave(domain);
    return result;
}

void ofpi_request_read_completion(struct ofp_request *request, struct ofp_completion *completion)
{
    *completion = request->completion;
    if (__builtin_expect(request->many, 0))
        ofpi_request_many_advance(request);
    /* A request with a message keeps its slot until the message is claimed, accepted, dropped or returned. */
    else if (!request->prepared && !ofpi_request_has_message(request))
        ofpi_request_free(request);
}

int ofp_request_take(ofp_request_t handle, int64_t timeout, struct ofp_completion *completion)
{
    struct ofp_request *request;
    struct ofpi_domain *domain;
    int result = ofpi_request_enter(handle, &request);

    if (result)
        return result;
    domain = request->domain;
    result = wait_for_request(request, handle, timeout);
    if (result == 1)
        ofpi_request_read_completion(request, completion);
    ofpi_domain_leave(domain);
    return result;
}

/* Read the completion without waiting for the domain's lock. */
static inline int read_completion_now(struct ofp_request *request, ofp_request_t handle, bool progress,
                                      struct ofp_completion *completion)
{
    struct ofpi_domain *domain = request->domain;
    int result = ofpi_domain_enter_as(domain, true);

    /* Another thread has the lock: report "not yet". */
    if (result)
        return result == -ENOLCK ? 0 : result;
    if (progress && ofpi_handle_of_request(request) == handle && !ofpi_request_is_finished(request))
        ofpi_domain_progress(domain, false);
    if (ofpi_handle_of_request(request) != handle)
        result = -ESTALE;
    else if (ofpi_request_is_finished(request))
        result = 1;
    if (result == 1)
        ofpi_request_read_completion(request, completion);
    ofpi_domain_leave(domain);
    return result;
}

int ofp_request_take_finished(ofp_request_t handle, struct ofp_completion *completion)
{
    struct ofp_request *request = ofpi_request_find(handle);

    if (!request)
        return -ESTALE;
    return ofpi_request_is_finished(request) ? read_completion_now(request, handle, false, completion) : 0;
}

int ofp_request_take_at_once(ofp_request_t handle, struct ofp_completion *completion)
{
    struct ofp_request *request = ofpi_request_find(handle);

    return request ? read_completion_now(request, handle, true, completion) : -ESTALE;
}

/* ------------------------------------------------------------------------------------------------------------ many */

struct many_condition {
    const ofp_request_t *requests;
    uint64_t count;
    uint64_t *finished; /* length of the prefix that is known to have finished */
};

static bool is_finished_or_stale(ofp_request_t handle) { return ofp_request_finished(handle) != 0; }

static bool are_all_finished(const void *argument)
{
    const struct many_condition *condition = argument;

    while (*condition->finished < condition->count && is_finished_or_stale(condition->requests[*condition->finished]))
        ++*condition->finished;
    return *condition->finished == condition->count;
}

static bool is_any_finished(const void *argument)
{
    const struct many_condition *condition = argument;

    for (uint64_t i = 0; i < condition->count; i++)
        if (is_finished_or_stale(condition->requests[i]))
            return true;
    return false;
}

/* The one domain of those that are not stale; NULL: all are. -EXDEV: there are several. */
static int find_common_domain(const ofp_request_t *requests, uint64_t count, struct ofpi_domain **domain)
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
    int result = find_common_domain(requests, count, &domain);

    if (result || !domain)
        return result ? result : 1;
    result = ofpi_domain_enter(domain);
    if (result)
        return result;
    result = ofpi_domain_wait(domain, all ? are_all_finished : is_any_finished, &condition, timeout, &expired);
    ofpi_domain_leave(domain);
    return result;
}

int ofp_request_notify(ofp_request_t handle, bool at_once)
{
    struct ofp_request *request;
    int result = ofpi_request_enter_as(handle, at_once, &request);

    if (result)
        return result == -ESTALE ? 1 : result;
    if (__builtin_expect(ofp_load_relaxed(&request->state) == OFPI_REQUEST_IDLE, 0))
        result = -EINVAL;
    else
        result = ofpi_request_is_finished(request);
    if (!result)
        request->notify = true;
    ofpi_domain_leave(request->domain);
    return result;
}

int ofp_request_spin(ofp_request_t handle, uint64_t duration)
{
    struct ofp_request *request;
    struct ofpi_domain *domain;
    struct run run;
    int result = ofpi_request_enter(handle, &request);

    if (result)
        return result == -ESTALE ? 1 : result;
    domain = request->domain;
    run = (struct run){request, request->runs};
    result = ofpi_domain_spin(domain, is_run_over, &run, duration);
    ofpi_domain_leave(domain);
    return result;
}
