/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes or reads of one size in C over the public calls. The peer does nothing. */
#include <errno.h>

#include "base/clock.h"
#include "measure.h"
#include "ofipy/ofp.h"

/* Store the durations of completed operations. Each counts from the end of the previous one. */
static void store_durations(const struct ofp_measure_attr *attr, uint64_t *done, uint64_t over, uint64_t *last)
{
    uint64_t now = ofpi_clock_read();

    for (; *done < over; ++*done) {
        if (attr->nanoseconds)
            attr->nanoseconds[*done] = now - *last;
        *last = now;
    }
}

int64_t ofp_measure_rma(const struct ofp_measure_attr *attr)
{
    struct ofp_operation op = ofpi_measure_remote(attr, attr->op);
    uint64_t posted = 0, done = 0, open = 0, none = 0, started = ofpi_clock_read(), last = started;
    int result = attr->depth ? 0 : -EINVAL;

    /* An injected write has no completion. */
    op.flags &= ~(uint64_t)OFP_INJECT;
    while (done < attr->iterations && !result) {
        for (; posted < attr->iterations && open < attr->depth && !result; posted++, open++)
            result = ofpi_measure_post(attr->endpoint, &op, 1);
        if (!result)
            result = ofpi_measure_completions_wait(attr->cq, &none, &open);
        store_durations(attr, &done, posted - open, &last);
    }
    return result ? result : (int64_t)(ofpi_clock_read() - started);
}
