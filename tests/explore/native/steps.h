/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps: places that a run reaches, and the one fault that happens at some of them.
 *
 * A step is named by its kind, its function, the thread, and how often this thread has reached the function by then. The
 * board records the steps; it is shared with the process that forks the runs, which reads it when a run has crashed. All
 * runs are forked from one process, so a pointer to a name or to code means the same in both.
 */
#ifndef EXPLORE_STEPS_H
#define EXPLORE_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* What is recorded, and where faults happen: a mask. */
enum step_kind {
    STEP_CALL = 1,      /* a call of the core by ofipy/requests */
    STEP_SYSTEM = 2,    /* a system call by ofipy's C */
    STEP_MEMORY = 4,    /* an allocation by ofipy's C */
    STEP_OBJECT = 8,    /* an allocation by Python */
    STEP_BYTECODE = 16, /* an instruction of ofipy's Python */
    STEP_AWAIT = 32,    /* a task that waits */
};

enum step_action {
    STEP_PASS,      /* nothing happens */
    STEP_FAIL,      /* fail with the fault's value: an errno, or what the call returns */
    STEP_SHORT,     /* move fewer bytes than was asked for, or do only the first of several things */
    STEP_DIE,       /* the process is killed */
    STEP_LATE,      /* the thread sleeps for the fault's value, in milliseconds */
    STEP_INTERRUPT, /* SIGINT, as if it came here */
    STEP_FORK,      /* another thread forks while this one is here */
    STEP_CANCEL,    /* the task that waits here is cancelled */
    STEP_DROP,      /* what runs here is dropped */
};

/* The result of step_reach. */
struct step_answer {
    enum step_action action;
    int64_t value;
};

/*
 * Record a step, and return what shall happen at it. Actions that are the same everywhere (die, late, interrupt, fork) have
 * happened when this returns. `caller` is an address in the code that calls the function.
 */
struct step_answer step_reach(enum step_kind kind, const char *function, const void *caller);
/* Whether steps of this kind are recorded in this run and `caller` is in ofipy's C. */
bool step_is_wanted(enum step_kind kind, const void *caller);
/* Whether `caller` is in ofipy's C. */
bool step_is_ours(const void *caller);
/* A block of memory of ofipy's C, for the list of what is left. */
void step_block_add(void *block, const void *caller);
void step_block_remove(void *block);

/* Whether sleeps of half a second and more last for ever in this run. */
bool step_naps_are_endless(void);

#define STEP_CALLER __builtin_return_address(0)
#define STEP_EXPORT __attribute__((visibility("default")))

#endif
