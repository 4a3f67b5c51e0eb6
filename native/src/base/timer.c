/* SPDX-License-Identifier: BSD-3-Clause */
/* A binary heap by deadline. Every timer stores its position, so that stopping it needs no search. */
#include "base/timer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void ofpi_timers_init(struct ofpi_timers *timers) { memset(timers, 0, sizeof(*timers)); }

void ofpi_timers_close(struct ofpi_timers *timers)
{
    free(timers->heap);
    memset(timers, 0, sizeof(*timers));
}

static void store_timer(struct ofpi_timers *timers, struct ofp_timer *timer, uint64_t position)
{
    timers->heap[position] = timer;
    timer->position = position;
}

/* Move a timer from `position` to the position that its deadline requires. */
static void move_timer(struct ofpi_timers *timers, struct ofp_timer *timer, uint64_t position)
{
    while (position > 1 && timers->heap[position / 2]->deadline > timer->deadline) {
        store_timer(timers, timers->heap[position / 2], position);
        position /= 2;
    }
    for (;;) {
        uint64_t child = position * 2;

        if (child > timers->count)
            break;
        if (child < timers->count && timers->heap[child + 1]->deadline < timers->heap[child]->deadline)
            child++;
        if (timers->heap[child]->deadline >= timer->deadline)
            break;
        store_timer(timers, timers->heap[child], position);
        position = child;
    }
    store_timer(timers, timer, position);
}

int ofpi_timers_start(struct ofpi_timers *timers, struct ofp_timer *timer)
{
    if (timer->position) {
        move_timer(timers, timer, timer->position);
        return 0;
    }
    if (timers->count + 1 >= timers->capacity) {
        uint64_t capacity = timers->capacity ? timers->capacity * 2 : 16;
        struct ofp_timer **heap = realloc(timers->heap, capacity * sizeof(struct ofp_timer *));

        if (!heap)
            return -ENOMEM;
        timers->heap = heap;
        timers->capacity = capacity;
    }
    timers->count++;
    move_timer(timers, timer, timers->count);
    return 0;
}

void ofpi_timers_stop(struct ofpi_timers *timers, struct ofp_timer *timer)
{
    uint64_t position = timer->position;
    struct ofp_timer *last;

    if (!position)
        return;
    OFPI_CHECK(position <= timers->count && timers->heap[position] == timer);
    last = timers->heap[timers->count--];
    timer->position = 0;
    if (last != timer)
        move_timer(timers, last, position);
}

int ofpi_timers_run(struct ofpi_timers *timers, uint64_t now)
{
    /* If a callback restarts its timer with a deadline that has passed, the timer expires in the next call. */
    uint64_t limit = timers->count;
    int fired = 0;

    while (limit-- && timers->count && timers->heap[1]->deadline <= now) {
        struct ofp_timer *timer = timers->heap[1];

        ofpi_timers_stop(timers, timer);
        timer->expired(timer, now);
        fired++;
    }
    return fired;
}

uint64_t ofpi_timers_find_deadline(const struct ofpi_timers *timers)
{
    return timers->count ? timers->heap[1]->deadline : UINT64_MAX;
}
