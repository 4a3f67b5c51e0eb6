/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduler: threads are those of the system, and one of them runs. It gives way at a scheduling point alone: at an
 * atomic operation of ofipy's C (points.h), at a call of libc that locks, waits, or moves bytes (schedule_calls.c).
 *
 * Time is virtual. Each point and each read of the clock takes a little; it jumps only when no thread can run.
 *
 * A place is named by its thread, its function, and how often this thread has reached a point of this function. Without a
 * decision the running thread goes on; one that waits or yields is followed by the next one that can run. A decision
 * names a place and the thread that runs from there. So a run follows from its decisions, and those from the seed.
 *
 * All functions but schedule_begin are called by the thread that runs; they need no lock.
 */
#ifndef EXPLORE_SCHEDULE_H
#define EXPLORE_SCHEDULE_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SCHEDULE_NAME 48
#define SCHEDULE_DECISIONS 8192
#define SCHEDULE_STORY 48
#define SCHEDULE_VERDICT 512
#define SCHEDULE_NEVER UINT64_MAX

/* The strategies; the seed draws one for each run. */
enum schedule_strategy {
    SCHEDULE_DEFAULT, /* nothing */
    SCHEDULE_TRACE,   /* the decisions that are given */
    SCHEDULE_PCT,     /* the thread of the highest priority runs; priorities change at drawn points */
    SCHEDULE_FOCUS,   /* as PCT, and priorities change at points of drawn functions */
    SCHEDULE_CHANCE,  /* at each point another thread with a drawn probability */
    SCHEDULE_MEET,    /* a thread is held at one place until another one has reached a second place */
};

/* From `place` on the thread `next` runs. */
struct schedule_decision {
    char thread[16], function[SCHEDULE_NAME], next[16];
    uint32_t occurrence;
    uint32_t used; /* of a decision that was given: it was reached */
};

/* A point that was reached. */
struct schedule_event {
    char thread[16];
    const char *function, *file; /* of the program */
    const void *caller;          /* instead of file and line */
    uint32_t line;
    uint64_t at; /* ns since the begin */
};

/* The result of a run: shared with the process that forked it. */
struct schedule_board {
    char verdict[SCHEDULE_VERDICT]; /* empty: nothing is wrong */
    bool ended;
    uint64_t steps, digest; /* the digest tells runs apart whose points differ */
    uint64_t virtual_ns, budget_ns;
    uint32_t decision_count, given_count, event_count;
    struct schedule_decision decisions[SCHEDULE_DECISIONS];
    struct schedule_decision given[SCHEDULE_DECISIONS];
    struct schedule_event events[SCHEDULE_STORY]; /* the last ones, in a circle */
};

extern struct schedule_board *schedule_board;

/* In the run, before it makes a thread. The caller becomes the thread "main". `budget`: of virtual time, ns. */
void schedule_begin(uint64_t seed, uint64_t budget);
/* Every thread but the caller has ended. The caller goes on alone, in real time. */
void schedule_end(void);
/* End the run with this verdict. Does not return. */
_Noreturn void schedule_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A number below `limit`, by the seed. */
uint64_t schedule_draw(uint64_t limit);
/* Drawn apart from these numbers: how long the program computes before its next call (ns), often 0; a bound, 1 or `most`. */
uint64_t schedule_draw_pause(void);
int schedule_draw_bound(int most);

/* Of the calling thread. */
const char *schedule_get_name(void);
/* Whether the calling thread is scheduled. If not, calls of libc go to libc. */
bool schedule_is_on(void);
/* The thread may be preempted here. */
void schedule_point(const char *function, const char *file, uint32_t line, const void *caller);
/* The next point is before a write by which other threads see what this one has done. */
void schedule_note_write(void);
/* Others run first, if any can. */
void schedule_yield(const char *function, const char *file, uint32_t line, const void *caller);
/* Wait until another thread calls schedule_wake with the address. False: the deadline has passed. */
bool schedule_wait(const char *function, const void *caller, const void *address, uint64_t deadline);
/* At most `count` threads that wait for the address can run. Returns how many. */
uint32_t schedule_wake(const void *address, uint32_t count);
/* Wait until one of the descriptors is ready or the deadline has passed. */
void schedule_wait_descriptors(const char *function, const void *caller, struct pollfd *entries, nfds_t count,
                               uint64_t deadline);
/* A lock that the thread is about to wait for, that it has, that it releases: schedule_locks.c. */
void schedule_note_wanted(const void *lock, const char *function);
void schedule_note_acquired(const void *lock);
void schedule_note_released(const void *lock);
/* Virtual time, ns. Reading it takes some. */
uint64_t schedule_read_clock(void);
/* The time by which a wait of `duration` from now is over. */
uint64_t schedule_deadline(uint64_t duration);
/* From the deadline on the descriptor is readable. It is an eventfd. */
void schedule_set_timer(int fd, uint64_t deadline);
void schedule_drain_timer(int fd);
void schedule_forget_timer(int fd);
bool schedule_is_timer(int fd);

/* A thread that is created, in its creator, and then in itself; and what it does last. Names it in the order of creation. */
struct schedule_thread *schedule_add_thread(void);
void schedule_enter_thread(struct schedule_thread *thread);
void schedule_leave_thread(struct schedule_thread *thread);
void schedule_set_handle(struct schedule_thread *thread, pthread_t handle);
/* NULL: it is none of the scheduler's. */
struct schedule_thread *schedule_find_thread(pthread_t handle);
void schedule_await_thread(struct schedule_thread *thread, const void *caller);
/* Of the thread that is added next. */
void schedule_name_next(const char *name);
void schedule_name_thread(struct schedule_thread *thread, const char *name);

#endif
