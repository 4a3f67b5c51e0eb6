/* SPDX-License-Identifier: BSD-3-Clause */
/* A window of tagged messages one way, then an empty one back, in C over the public calls. */
#include "domain.h"
#include "measure.h"

#define BLOCK 64 /* records of one post */

static int post_all(const struct ofp_measure_attr *attr, struct ofp_operation op)
{
    struct ofp_operation ops[BLOCK];
    int result = 0;

    for (uint64_t i = 0; i < BLOCK && i < attr->iterations; i++)
        ops[i] = op;
    for (uint64_t left = attr->iterations; left && !result;) {
        uint64_t count = left < BLOCK ? left : BLOCK;

        result = ofpi_measure_post(attr->endpoint, ops, count);
        left -= count;
    }
    return result;
}

static int finish(const struct ofp_measure_attr *attr, uint64_t receives_open, uint64_t sends_open)
{
    int result = 0;

    while ((receives_open || sends_open) && !result)
        result = ofpi_measure_take(attr->cq, &receives_open, &sends_open);
    return result;
}

static int send_window(const struct ofp_measure_attr *attr)
{
    struct ofp_operation message = ofpi_measure_tsend(attr, attr->length);
    struct ofp_operation acknowledgement = ofpi_measure_trecv(attr, 0);
    int result = ofpi_measure_post(attr->endpoint, &acknowledgement, 1);

    if (!result)
        result = post_all(attr, message);
    return result ? result : finish(attr, 1, message.flags & OFP_INJECT ? 0 : attr->iterations);
}

static int receive_window(const struct ofp_measure_attr *attr)
{
    struct ofp_operation acknowledgement = ofpi_measure_tsend(attr, 0);
    int result = post_all(attr, ofpi_measure_trecv(attr, attr->length));

    if (!result)
        result = finish(attr, attr->iterations, 0);
    return result ? result : ofpi_measure_post(attr->endpoint, &acknowledgement, 1);
}

int64_t ofp_measure_stream(const struct ofp_measure_attr *attr)
{
    uint64_t started = ofpi_now();
    int result = attr->first ? send_window(attr) : receive_window(attr);

    return result ? result : (int64_t)(ofpi_now() - started);
}
