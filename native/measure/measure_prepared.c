/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepared requests in C over the public calls: of a collective, each run is one more of its group. */
#include <errno.h>

#include "base/clock.h"
#include "measure.h"
#include "ofipy/ofp.h"

/* The core waits for a second at most. Nobody else takes the completion. */
static int wait_request(ofp_request_t request)
{
    struct ofp_completion completion;
    int result;

    do
        result = ofpi_measure_core.request_take(request, -1, &completion);
    while (!result || result == -EINTR);
    return result < 0 ? result : -completion.error;
}

static int run_requests(const ofp_request_t *requests, uint64_t count)
{
    int result = 0;

    for (uint64_t i = 0; i < count && !result; i++)
        result = ofpi_measure_core.start(requests[i], 0, -1);
    for (uint64_t i = 0; i < count && !result; i++)
        result = wait_request(requests[i]);
    return result;
}

int64_t ofp_measure_prepared(const ofp_request_t *requests, uint64_t count, uint64_t iterations)
{
    uint64_t started = ofpi_clock_read();
    int result = 0;

    for (uint64_t i = 0; i < iterations && !result; i++)
        result = run_requests(requests, count);
    return result ? result : (int64_t)(ofpi_clock_read() - started);
}
