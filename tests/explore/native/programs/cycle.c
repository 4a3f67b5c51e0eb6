/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads acquire two locks in opposite orders, one after the other: nobody waits, and yet they may. */
#include "program.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *const orders[2][2] = {{&first, &second}, {&second, &first}};

static void *acquire_both(void *of)
{
    pthread_mutex_t *const *order = of;

    pthread_mutex_lock(order[0]);
    pthread_mutex_lock(order[1]);
    pthread_mutex_unlock(order[1]);
    pthread_mutex_unlock(order[0]);
    return NULL;
}

static void run_cycle(void)
{
    for (int i = 0; i < 2; i++)
        thread_join(thread_start(i ? "B" : "A", acquire_both, (void *)orders[i]));
}

const struct program program_cycle = {"cycle", "fake", 0, run_cycle, "lock order"};
