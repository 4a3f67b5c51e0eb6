/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking what a request has finished with, which gives it back. */
#include <errno.h>

#include "domain.h"

struct ofp_completion ofp_request_take(ofp_request_t handle, int64_t timeout)
{
    struct ofp_request *request = ofpi_request_of(handle);
    struct ofpi_domain *domain = request->domain;
    struct ofp_completion taken = {.error = ofpi_domain_enter(domain)};
    bool expired;
    int result;

    if (taken.error)
        return taken;
    taken.error = -EINVAL;
    if (ofp_load_relaxed(&request->state) != OFPI_REQUEST_IDLE) {
        result = ofpi_wait(domain, ofpi_request_is_finished, request, timeout, &expired);
        if (result == 1) {
            taken = request->completion;
            if (request->many)
                ofpi_request_many_taken(request);
            else if (!request->prepared && !(taken.flags & OFP_COMPLETED_CLAIM))
                ofpi_request_give(request);
        } else {
            taken.error = result ? result : -EAGAIN;
        }
    }
    ofpi_domain_leave(domain);
    return taken;
}

int64_t ofp_request_take_length(ofp_request_t handle)
{
    struct ofp_request *request = ofpi_request_of(handle);
    struct ofpi_domain *domain;
    int64_t length;
    bool expired;

    if (!request)
        return -EINVAL;
    domain = request->domain;
    length = ofpi_domain_enter(domain);
    if (length)
        return length;
    length = -EAGAIN;
    if (ofp_load_relaxed(&request->state) != OFPI_REQUEST_IDLE &&
        ofpi_wait(domain, ofpi_request_is_finished, request, -1, &expired) == 1 && !request->completion.error &&
        !request->prepared && !request->many &&
        !(request->completion.flags & (OFP_COMPLETED_CLAIM | OFP_COMPLETED_REMOTE_CQ_DATA))) {
        length = (int64_t)request->completion.length;
        ofpi_request_give(request);
    }
    ofpi_domain_leave(domain);
    return length;
}

struct ofp_completion ofp_request_recall(ofp_request_t handle)
{
    const struct ofp_request *request = ofpi_request_of(handle);
    struct ofp_completion completion = {.error = ofpi_domain_enter(request->domain)};

    if (completion.error)
        return completion;
    completion.error = -EAGAIN;
    if (request->given && ofpi_request_handle(request) == handle &&
        ofp_load_relaxed(&request->state) == OFPI_REQUEST_FINISHED)
        completion = request->completion;
    ofpi_domain_leave(request->domain);
    return completion;
}
