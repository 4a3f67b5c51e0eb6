/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests in the spelling that is shortest in a test: plain arguments, waiting for room and for the end for ever. */
#ifndef REQUEST_FIXTURE_H
#define REQUEST_FIXTURE_H

#include "core_fixture.h"

static inline ofp_request_t request_start(struct ofp_endpoint *endpoint, const struct ofp_operation *operation)
{
    return ofp_request_start(endpoint, operation, 0, -1);
}

static inline ofp_request_t request_tsend(struct ofp_endpoint *endpoint, const void *buffer, uint64_t length,
                                          uint32_t peer, uint64_t tag)
{
    struct ofp_operation op = {
        .op = OFP_TSEND, .peer = peer, .tag = tag, .offset = (uint64_t)(uintptr_t)buffer, .length = length};

    return request_start(endpoint, &op);
}

static inline ofp_request_t request_trecv(struct ofp_endpoint *endpoint, void *buffer, uint64_t length, uint32_t peer,
                                          uint64_t tag)
{
    struct ofp_operation op = {
        .op = OFP_TRECV, .peer = peer, .tag = tag, .offset = (uint64_t)(uintptr_t)buffer, .length = length};

    return request_start(endpoint, &op);
}

/* Progress, then a look. */
static inline int request_test(ofp_request_t request) { return ofp_request_wait(request, 0); }

/* The completion; its error is negative when there is none: -EAGAIN when the time is over. */
static inline struct ofp_completion request_take(ofp_request_t request, int64_t timeout)
{
    struct ofp_completion completion = {0};
    int result = ofp_request_take(request, timeout, &completion);

    if (result != 1)
        completion.error = result ? result : -EAGAIN;
    return completion;
}

#endif
