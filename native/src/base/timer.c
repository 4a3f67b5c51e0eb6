/* SPDX-License-Identifier: BSD-3-Clause */
/* A binary heap by deadline. Every timer stores its position, so that stopping it needs no search. */
#include "base/timer.h"

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

static bool grow_heap(struct ofpi_timers *timers)
{
    uint64_t capacity = timers->capacity ? timers->capacity * 2 : 16;
    struct ofp_timer **heap = realloc(timers->heap, capacity * sizeof(struct ofp_timer *));

    if (!heap)
        return false;
    timers->heap = heap;
    timers->capacity = capacity;
    return true;
}

/* --------------------------------------------------------------------------------------------- outside of the heap */

/* `position` of an unsorted timer is the next one's address with this bit, which no address of a program has. */
#define UNSORTED (1ull << 63)

static bool is_unsorted(const struct ofp_timer *timer) { return timer->position & UNSORTED; }

static struct ofp_timer *find_next_unsorted(const struct ofp_timer *timer)
{
    return (struct ofp_timer *)(uintptr_t)(timer->position & ~UNSORTED);
}

static void add_unsorted(struct ofpi_timers *timers, struct ofp_timer *timer)
{
    timer->position = (uint64_t)(uintptr_t)timers->unsorted | UNSORTED;
    timers->unsorted = timer;
}

static void remove_unsorted(struct ofpi_timers *timers, struct ofp_timer *timer)
{
    struct ofp_timer *previous = timers->unsorted;

    if (previous == timer) {
        timers->unsorted = find_next_unsorted(timer);
    } else {
        while (find_next_unsorted(previous) != timer)
            previous = find_next_unsorted(previous);
        previous->position = timer->position;
    }
    timer->position = 0;
}

static struct ofp_timer *find_earliest(const struct ofpi_timers *timers)
{
    struct ofp_timer *earliest = timers->count ? timers->heap[1] : NULL;

    for (struct ofp_timer *timer = timers->unsorted; timer; timer = find_next_unsorted(timer))
        if (!earliest || timer->deadline < earliest->deadline)
            earliest = timer;
    return earliest;
}

/* --------------------------------------------------------------------------------------------------------- interface */

void ofpi_timers_start(struct ofpi_timers *timers, struct ofp_timer *timer)
{
    if (is_unsorted(timer))
        return;
    if (!timer->position && timers->count + 1 >= timers->capacity && !grow_heap(timers)) {
        add_unsorted(timers, timer);
        return;
    }
    move_timer(timers, timer, timer->position ? timer->position : ++timers->count);
}

void ofpi_timers_stop(struct ofpi_timers *timers, struct ofp_timer *timer)
{
    uint64_t position = timer->position;
    struct ofp_timer *last;

    if (!position)
        return;
    if (is_unsorted(timer)) {
        remove_unsorted(timers, timer);
        return;
    }
    OFPI_CHECK(position <= timers->count && timers->heap[position] == timer);
    last = timers->heap[timers->count--];
    timer->position = 0;
    if (last != timer)
        move_timer(timers, last, position);
}

int ofpi_timers_run(struct ofpi_timers *timers, uint64_t now)
{
    struct ofp_timer *timer = timers->unsorted;
    uint64_t limit = timers->count;
    int fired = 0;

    for (; timer; timer = find_next_unsorted(timer))
        limit++;
    /* If a callback restarts its timer with a deadline that has passed, the timer expires in the next call. */
    while (limit-- && (timer = find_earliest(timers)) && timer->deadline <= now) {
        ofpi_timers_stop(timers, timer);
        timer->expired(timer, now);
        fired++;
    }
    return fired;
}

uint64_t ofpi_timers_find_deadline(const struct ofpi_timers *timers)
{
    const struct ofp_timer *earliest = find_earliest(timers);

    return earliest ? earliest->deadline : UINT64_MAX;
}
