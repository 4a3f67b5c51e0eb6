/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads as the scheduler's two files know them: schedule.c runs them, schedule_plan.c chooses among them. */
#ifndef EXPLORE_SCHEDULE_THREAD_H
#define EXPLORE_SCHEDULE_THREAD_H

#include <stdatomic.h>

#include "schedule.h"

#define THREADS_MAX 16
#define PLACES_MAX 1024 /* of a thread; a power of two */

enum wait_kind { RUNS, WAITS_ADDRESS, WAITS_DESCRIPTORS, ENDED };

/* A function, and how often the thread has reached a point of it. */
struct place {
    const char *function; /* NULL: free */
    uint32_t count;
};

struct schedule_thread {
    char name[16];
    _Atomic uint32_t go; /* 1: it runs */
    enum wait_kind wait;
    const void *address;
    struct pollfd *entries;
    nfds_t entry_count;
    uint64_t deadline;
    uint64_t withheld_until; /* the strategy lets it not run before */
    uint32_t priority;
    bool woken;
    bool has_handle;
    pthread_t handle;
    struct place places[PLACES_MAX];
};

/* Written by the thread that runs alone. */
extern struct schedule_thread schedule_threads[THREADS_MAX];
extern uint32_t schedule_thread_count, schedule_current;
extern uint64_t schedule_now;

/* The point that was reached is before a write by which other threads see what was done. */
extern bool schedule_is_write;

bool schedule_can_run(struct schedule_thread *thread);
struct schedule_thread *schedule_find_by_name(const char *name);

/* The strategy of the seed, unless there is a trace to follow. */
void schedule_draw_plan(uint64_t seed);
uint32_t schedule_draw_priority(void);
/* Until then a thread is withheld. */
uint64_t schedule_withheld_end(void);
uint32_t schedule_hash(const char *name);
/* Who runs behind a point of `self`; a decision that changes the default is recorded. NULL: no thread can run. */
struct schedule_thread *schedule_choose(struct schedule_thread *self, const char *function, uint32_t occurrence,
                                        bool yields);

#endif
