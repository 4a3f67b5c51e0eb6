/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ping-pong of writes of one 64-bit number, in C over the public calls. Each side writes its number into memory that
 * the other has lent, and spins on its own until the same number is there.
 */
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "domain.h"
#include "measure.h"

#define ROWS 4
#define LOOKS 256 /* at the memory between two at the queue, where a failed write would show */

struct write_loop {
    const struct ofp_measure_attr *attr;
    struct ofp_operation write;
    const _Atomic uint64_t *landing;
    uint64_t turn;
    uint64_t open; /* writes whose completion has not been read */
};

static int look_at_queue(struct write_loop *loop)
{
    struct ofp_completion rows[ROWS];
    int64_t count = ofp_cq_read(loop->attr->cq, rows, ROWS);

    for (int64_t i = 0; i < count; i++)
        if (rows[i].error)
            return -rows[i].error;
    return count < 0 && count != -EAGAIN ? (int)count : 0;
}

/* Pairs with whatever the peer's transport does last in a write; nothing but the number is read behind it. */
static int wait_landing(struct write_loop *loop)
{
    int result = 0;

    while (!result) {
        for (int i = 0; i < LOOKS; i++)
            if (ofp_load_acquire(loop->landing) == loop->turn)
                return 0;
        result = look_at_queue(loop);
    }
    return result;
}

static int write_turn(struct write_loop *loop)
{
    uint64_t none = 0;
    int result;

    memcpy(loop->attr->send_buffer, &loop->turn, sizeof(loop->turn));
    if (!(loop->write.flags & OFP_INJECT))
        loop->open++;
    result = ofpi_measure_post(loop->attr->endpoint, &loop->write, 1);
    while (loop->open && !result)
        result = ofpi_measure_take(loop->attr->cq, &none, &loop->open);
    return result;
}

static int exchange(struct write_loop *loop)
{
    int result = 0;

    loop->turn++;
    if (loop->attr->first)
        result = write_turn(loop);
    if (!result)
        result = wait_landing(loop);
    if (!result && !loop->attr->first)
        result = write_turn(loop);
    return result;
}

int64_t ofp_measure_write(const struct ofp_measure_attr *attr)
{
    struct write_loop loop = {
        .attr = attr, .write = ofpi_measure_tsend(attr, sizeof(uint64_t)), .landing = attr->receive_buffer};
    uint64_t started, last;
    int result = 0;

    if (attr->length != sizeof(uint64_t) || (uintptr_t)attr->receive_buffer % alignof(uint64_t))
        return -EINVAL;
    loop.write.op = OFP_WRITE;
    loop.write.tag = 0;
    loop.write.remote_offset = attr->remote_offset;
    loop.write.remote_key = attr->remote_key;
    memcpy(&loop.turn, attr->send_buffer, sizeof(loop.turn));
    started = last = ofpi_now();
    for (uint64_t i = 0; i < attr->iterations && !result; i++) {
        result = exchange(&loop);
        if (attr->nanoseconds) {
            uint64_t now = ofpi_now();

            attr->nanoseconds[i] = now - last;
            last = now;
        }
    }
    return result ? result : (int64_t)(ofpi_now() - started);
}
