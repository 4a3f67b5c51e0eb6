/* SPDX-License-Identifier: BSD-3-Clause */
/* A ping-pong of tagged messages in C over the public calls: what the core costs without Python. */
#include "domain.h"
#include "measure.h"

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
        result = ofpi_measure_take(loop->attr->cq, &receives_open, &loop->sends_open);
    return result;
}

static int send(struct pingpong *loop)
{
    if (!(loop->send.flags & OFP_INJECT))
        loop->sends_open++;
    return ofpi_measure_post(loop->attr->endpoint, &loop->send, 1);
}

/* The next receive is posted as soon as the last one is over, as a program that knows what comes would. */
static int exchange(struct pingpong *loop, bool last)
{
    int result = loop->attr->first ? send(loop) : 0;

    if (!result)
        result = wait_receive(loop);
    if (!result && !last)
        result = ofpi_measure_post(loop->attr->endpoint, &loop->receive, 1);
    if (!result && !loop->attr->first)
        result = send(loop);
    return result;
}

int64_t ofp_measure_pingpong(const struct ofp_measure_attr *attr)
{
    struct pingpong loop = {.attr = attr,
                            .send = ofpi_measure_tsend(attr, attr->length),
                            .receive = ofpi_measure_trecv(attr, attr->length)};
    uint64_t started, last, none = 0;
    int result = ofpi_measure_post(attr->endpoint, &loop.receive, 1);

    started = last = ofpi_now();
    for (uint64_t i = 0; i < attr->iterations && !result; i++) {
        result = exchange(&loop, i + 1 == attr->iterations);
        if (attr->nanoseconds) {
            uint64_t now = ofpi_now();

            attr->nanoseconds[i] = now - last;
            last = now;
        }
    }
    last = ofpi_now();
    while (loop.sends_open && !result)
        result = ofpi_measure_take(attr->cq, &none, &loop.sends_open);
    return result ? result : (int64_t)(last - started);
}
