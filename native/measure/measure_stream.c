/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of messages in one direction, each acknowledged by an empty message, in C over the public calls. */
#include <errno.h>

#include "base/clock.h"
#include "measure.h"
#include "ofipy/ofp.h"

#define BLOCK 64 /* operations of one post */

static int post_window(const struct ofp_measure_attr *attr, struct ofp_operation op)
{
    struct ofp_operation ops[BLOCK];
    int result = 0;

    for (uint64_t i = 0; i < BLOCK && i < attr->depth; i++)
        ops[i] = op;
    for (uint64_t left = attr->depth; left && !result;) {
        uint64_t count = left < BLOCK ? left : BLOCK;

        result = ofpi_measure_post(attr->endpoint, ops, count);
        left -= count;
    }
    return result;
}

static int wait_window(const struct ofp_measure_attr *attr, uint64_t receives_open, uint64_t sends_open)
{
    int result = 0;

    while ((receives_open || sends_open) && !result)
        result = ofpi_measure_completions_wait(attr->cq, &receives_open, &sends_open);
    return result;
}

static int send_window(const struct ofp_measure_attr *attr)
{
    struct ofp_operation message = ofpi_measure_send(attr, attr->length);
    struct ofp_operation acknowledgement = ofpi_measure_recv(attr, 0);
    int result = ofpi_measure_post(attr->endpoint, &acknowledgement, 1);

    if (!result)
        result = post_window(attr, message);
    return result ? result : wait_window(attr, 1, message.flags & OFP_INJECT ? 0 : attr->depth);
}

static int receive_window(const struct ofp_measure_attr *attr)
{
    struct ofp_operation acknowledgement = ofpi_measure_send(attr, 0);
    int result = post_window(attr, ofpi_measure_recv(attr, attr->length));

    if (!result)
        result = wait_window(attr, attr->depth, 0);
    return result ? result : ofpi_measure_post(attr->endpoint, &acknowledgement, 1);
}

int64_t ofp_measure_stream(const struct ofp_measure_attr *attr)
{
    uint64_t started = ofpi_clock_read(), last = started;
    int result = attr->depth ? 0 : -EINVAL;

    for (uint64_t i = 0; i < attr->iterations && !result; i++) {
        result = attr->first ? send_window(attr) : receive_window(attr);
        if (attr->nanoseconds) {
            uint64_t now = ofpi_clock_read();

            attr->nanoseconds[i] = now - last;
            last = now;
        }
    }
    return result ? result : (int64_t)(ofpi_clock_read() - started);
}
