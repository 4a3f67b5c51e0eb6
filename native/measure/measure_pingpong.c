/* SPDX-License-Identifier: BSD-3-Clause */
/* A ping-pong of messages in C over the public calls: the cost of the core without Python. */
#include "base/clock.h"
#include "measure.h"
#include "ofipy/ofp.h"

#define AHEAD 2 /* receives that are posted in advance */

struct pingpong {
    const struct ofp_measure_attr *attr;
    struct ofp_operation send, receive;
    uint64_t sends_open; /* sends whose completion has not been read */
};

static int wait_receive(struct pingpong *loop)
{
    uint64_t receives_open = 1;
    int result = 0;

    while (receives_open && !result)
        result = ofpi_measure_completions_wait(loop->attr->cq, &receives_open, &loop->sends_open);
    return result;
}

static int post_send(struct pingpong *loop)
{
    int result;

    if (!(loop->send.flags & OFP_INJECT))
        loop->sends_open++;
    result = ofpi_measure_post(loop->attr->endpoint, &loop->send, 1);
    loop->send.tag += loop->attr->tag_step;
    return result;
}

static int post_receive(struct pingpong *loop)
{
    int result = ofpi_measure_post(loop->attr->endpoint, &loop->receive, 1);

    loop->receive.tag += loop->attr->tag_step;
    return result;
}

/*
 * One round trip; `left` round trips remain, with this one. The send comes first, because the peer waits for it. Two
 * receives are posted at the start and one behind each answer, as in a program that knows what it will receive.
 */
static int run_round_trip(struct pingpong *loop, uint64_t left)
{
    int result = wait_receive(loop);

    if (!result && (left > 1 || !loop->attr->first))
        result = post_send(loop);
    if (!result && left > AHEAD)
        result = post_receive(loop);
    return result;
}

static int post_first_receives(struct pingpong *loop)
{
    int result = 0;

    for (uint64_t i = 0; i < AHEAD && i < loop->attr->iterations && !result; i++)
        result = post_receive(loop);
    return result;
}

int64_t ofp_measure_pingpong(const struct ofp_measure_attr *attr)
{
    struct pingpong loop = {
        .attr = attr, .send = ofpi_measure_send(attr, attr->length), .receive = ofpi_measure_recv(attr, attr->length)};
    uint64_t started, last, none = 0;
    int result = post_first_receives(&loop);

    started = last = ofpi_clock_read();
    if (attr->first && attr->iterations && !result)
        result = post_send(&loop);
    for (uint64_t i = 0; i < attr->iterations && !result; i++) {
        result = run_round_trip(&loop, attr->iterations - i);
        if (attr->nanoseconds) {
            uint64_t now = ofpi_clock_read();

            attr->nanoseconds[i] = now - last;
            last = now;
        }
    }
    last = ofpi_clock_read();
    while (loop.sends_open && !result)
        result = ofpi_measure_completions_wait(attr->cq, &none, &loop.sends_open);
    return result ? result : (int64_t)(last - started);
}
