/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which threads acquire locks. A thread that waits for a lock while it holds another one gives an edge between
 * the two. A circle of edges is a deadlock of some schedule, even if no thread waits in this one.
 */
#include <string.h>

#include "schedule.h"

#define LOCKS_MAX 256
#define HELD_MAX 16

/* Where a lock was acquired while another one was held. */
struct edge {
    const char *thread, *function; /* NULL: there was none */
};

static const void *locks[LOCKS_MAX];
static uint32_t lock_count;
static struct edge edges[LOCKS_MAX][LOCKS_MAX]; /* by the lock that was held, and the one that was acquired */
static __thread uint32_t held[HELD_MAX], held_count;

static uint32_t find_lock(const void *lock)
{
    for (uint32_t i = 0; i < lock_count; i++)
        if (locks[i] == lock)
            return i;
    if (lock_count == LOCKS_MAX)
        schedule_fail("the scheduler knows no more locks");
    locks[lock_count] = lock;
    return lock_count++;
}

/* Whether one lock was acquired behind the other, in one or in several steps. */
static bool leads_to(uint32_t from, uint32_t to, bool *seen)
{
    if (from == to)
        return true;
    seen[from] = true;
    for (uint32_t next = 0; next < lock_count; next++)
        if (edges[from][next].thread && !seen[next] && leads_to(next, to, seen))
            return true;
    return false;
}

/* The first step of the way from one lock to the other. */
static const struct edge *find_step(uint32_t from, uint32_t to)
{
    for (uint32_t next = 0; next < lock_count; next++) {
        bool seen[LOCKS_MAX] = {false};

        seen[from] = true;
        if (edges[from][next].thread && leads_to(next, to, seen))
            return &edges[from][next];
    }
    return NULL;
}

static void add_edge(uint32_t before, uint32_t lock, const char *function)
{
    const struct edge *back;

    if (edges[before][lock].thread)
        return;
    edges[before][lock] = (struct edge){schedule_get_name(), function};
    back = find_step(lock, before);
    if (back)
        schedule_fail(
            "lock order: %s acquires in %s a lock that is held where %s acquires, in %s, the one that %s holds",
            edges[before][lock].thread, function, back->thread, back->function, edges[before][lock].thread);
}

void schedule_note_wanted(const void *lock, const char *function)
{
    uint32_t number;

    if (!schedule_is_on())
        return;
    number = find_lock(lock);
    for (uint32_t i = 0; i < held_count; i++)
        if (held[i] != number)
            add_edge(held[i], number, function);
}

void schedule_note_acquired(const void *lock)
{
    if (schedule_is_on() && held_count < HELD_MAX)
        held[held_count++] = find_lock(lock);
}

void schedule_note_released(const void *lock)
{
    if (!schedule_is_on())
        return;
    for (uint32_t i = held_count; i-- > 0;) {
        if (locks[held[i]] != lock)
            continue;
        memmove(&held[i], &held[i + 1], (held_count - i - 1) * sizeof(held[0]));
        held_count--;
        return;
    }
}
