/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring loops in C over the public calls: what the core costs without Python. */
#include <errno.h>

#include "domain.h"

struct pingpong {
    const struct ofp_measure_attr *attr;
    struct ofp_operation send, receive;
    uint64_t sends_open; /* sends whose completion has not been read */
};

static int take_rows(struct pingpong *loop, bool *received)
{
    struct ofp_completion rows[4];
    bool expired;
    int64_t count = ofp_cq_wait(loop->attr->cq, rows, 4, 1, -1, &expired);

    for (int64_t i = 0; i < count; i++) {
        if (rows[i].error)
            return -rows[i].error;
        if (rows[i].flags & OFP_COMPLETED_RECV)
            *received = true;
        else
            loop->sends_open--;
    }
    return count < 0 ? (int)count : 0;
}

static int wait_receive(struct pingpong *loop)
{
    bool received = false;
    int result = 0;

    while (!received && !result)
        result = take_rows(loop, &received);
    return result;
}

static int post(const struct ofp_measure_attr *attr, const struct ofp_operation *op)
{
    int64_t accepted;

    while ((accepted = ofp_post(attr->endpoint, op, 1)) == -EAGAIN)
        ofp_domain_progress(attr->endpoint->domain);
    return accepted == 1 ? 0 : (int)accepted;
}

static int send(struct pingpong *loop)
{
    if (!(loop->send.flags & OFP_INJECT))
        loop->sends_open++;
    return post(loop->attr, &loop->send);
}

/* The next receive is posted as soon as the last one is over, as a program that knows what comes would. */
static int exchange(struct pingpong *loop, bool last)
{
    int result = loop->attr->first ? send(loop) : 0;

    if (!result)
        result = wait_receive(loop);
    if (!result && !last)
        result = post(loop->attr, &loop->receive);
    if (!result && !loop->attr->first)
        result = send(loop);
    return result;
}

static void fill_operations(struct pingpong *loop, const struct ofp_measure_attr *attr)
{
    loop->attr = attr;
    loop->send = (struct ofp_operation){.op = OFP_TSEND,
                                        .peer = attr->peer,
                                        .tag = attr->tag,
                                        .offset = (uint64_t)(uintptr_t)attr->send_buffer,
                                        .length = attr->length};
    loop->receive = loop->send;
    loop->receive.op = OFP_TRECV;
    loop->receive.offset = (uint64_t)(uintptr_t)attr->receive_buffer;
    if (attr->length <= attr->endpoint->info.inject_size)
        loop->send.flags = OFP_INJECT;
}

int64_t ofp_measure_pingpong(const struct ofp_measure_attr *attr)
{
    struct pingpong loop = {0};
    uint64_t started, last;
    bool ignored;
    int result;

    fill_operations(&loop, attr);
    result = post(attr, &loop.receive);
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
        result = take_rows(&loop, &ignored);
    return result ? result : (int64_t)(last - started);
}
