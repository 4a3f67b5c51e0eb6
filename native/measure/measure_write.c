/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ping-pong of writes in C over the public calls. Each side writes into memory that the other has exposed, with a
 * number in the last 8 bytes, and spins on its own memory until that number arrives. The transports that are measured
 * deliver the end of a write last. If the length is no multiple of 8, the last byte contains the number: the sides
 * take turns, so a number cannot be confused with the one 256 turns earlier.
 */
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/clock.h"
#include "measure.h"
#include "ofipy/atomics.h"
#include "ofipy/ofp.h"

#define ROWS 4
#define LOOKS 4096 /* reads of the memory between two polls of the queue, which reports a failed write */

struct write_loop {
    const struct ofp_measure_attr *attr;
    struct ofp_operation write;
    char *number; /* in the last bytes of send_buffer */
    size_t width; /* size of the number: 8, or 1 */
    const void *landing;
    uint64_t turn;
    uint64_t open; /* writes whose completion has not been read */
};

static int poll_queue(struct write_loop *loop)
{
    struct ofp_completion rows[ROWS];
    int64_t count = ofpi_measure_core.cq_read(loop->attr->cq, rows, ROWS);

    for (int64_t i = 0; i < count; i++)
        if (rows[i].error)
            return -rows[i].error;
    return count < 0 && count != -EAGAIN ? (int)count : 0;
}

static bool has_landed(const struct write_loop *loop)
{
    if (loop->width == 1)
        return ofp_load_acquire((const _Atomic uint8_t *)loop->landing) == (uint8_t)loop->turn;
    return ofp_load_acquire((const _Atomic uint64_t *)loop->landing) == loop->turn;
}

/* The acquire pairs with the last store of the peer's transport. Nothing but the number is read behind it. */
static int wait_landing(struct write_loop *loop)
{
    int result = 0;

    while (!result) {
        for (int i = 0; i < LOOKS; i++)
            if (has_landed(loop))
                return 0;
        result = poll_queue(loop);
    }
    return result;
}

static int write_turn(struct write_loop *loop)
{
    uint64_t none = 0;
    int result;

    if (loop->width == 1)
        *loop->number = (char)loop->turn;
    else
        memcpy(loop->number, &loop->turn, sizeof(loop->turn));
    if (!(loop->write.flags & OFP_INJECT))
        loop->open++;
    result = ofpi_measure_post(loop->attr->endpoint, &loop->write, 1);
    while (loop->open && !result)
        result = ofpi_measure_completions_wait(loop->attr->cq, &none, &loop->open);
    return result;
}

static int run_write_round_trip(struct write_loop *loop)
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
    const size_t width = attr->length % sizeof(uint64_t) ? 1 : sizeof(uint64_t);
    struct write_loop loop = {.attr = attr, .write = ofpi_measure_remote(attr, OFP_WRITE), .width = width};
    uint64_t started, last;
    int result = 0;

    if (!attr->length || (width > 1 && (uintptr_t)attr->receive_buffer % alignof(uint64_t)))
        return -EINVAL;
    loop.number = (char *)attr->send_buffer + attr->length - width;
    loop.landing = (char *)attr->receive_buffer + attr->length - width;
    if (width == 1)
        loop.turn = (uint8_t)*loop.number;
    else
        memcpy(&loop.turn, loop.number, sizeof(loop.turn));
    started = last = ofpi_clock_read();
    for (uint64_t i = 0; i < attr->iterations && !result; i++) {
        result = run_write_round_trip(&loop);
        if (attr->nanoseconds) {
            uint64_t now = ofpi_clock_read();

            attr->nanoseconds[i] = now - last;
            last = now;
        }
    }
    return result ? result : (int64_t)(ofpi_clock_read() - started);
}
