/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetch-adds of a 64-bit number, one after the other, in C over the public calls. The peer that owns the memory does
 * nothing.
 */
#include "base/clock.h"
#include "measure.h"
#include "ofipy/ofp.h"

int64_t ofp_measure_fetch_add(const struct ofp_measure_attr *attr)
{
    uint64_t one = 1, fetched = 0, started = ofpi_clock_read(), last = started;
    struct ofp_operation add = {.op = OFP_FETCH_ATOMIC,
                                .atomic_op = OFP_ATOMIC_SUM,
                                .datatype = OFP_UINT64,
                                .peer = attr->peer,
                                .offset = (uint64_t)(uintptr_t)&one,
                                .length = sizeof(one),
                                .remote_offset = attr->remote_offset,
                                .remote_key = attr->remote_key,
                                .result_offset = (uint64_t)(uintptr_t)&fetched};
    int result = 0;

    for (uint64_t i = 0; i < attr->iterations && !result; i++) {
        uint64_t none = 0, open = 1;

        result = ofpi_measure_post(attr->endpoint, &add, 1);
        while (open && !result)
            result = ofpi_measure_completions_wait(attr->cq, &none, &open);
        if (attr->nanoseconds) {
            uint64_t now = ofpi_clock_read();

            attr->nanoseconds[i] = now - last;
            last = now;
        }
    }
    return result ? result : (int64_t)(ofpi_clock_read() - started);
}
