/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures how long a cache line takes from core to core and back, which bounds every short operation. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>

#include "base/clock.h"
#include "ofipy/atomics.h"
#include "ofipy/measure.h"

/*
 * Both threads spin on one word that counts the handovers. An odd count means that it is the turn of the other
 * thread.
 */
struct handover {
    alignas(64) _Atomic uint64_t word;
    alignas(64) uint64_t turns;
};

/* The acquire pairs with the other thread's release. No other memory is shared. */
static void wait_for_count(const struct handover *handover, uint64_t count)
{
    while (ofp_load_acquire(&handover->word) != count)
        ;
}

static void *run_answering_thread(void *argument)
{
    struct handover *handover = argument;

    for (uint64_t i = 0; i < handover->turns; i++) {
        wait_for_count(handover, 2 * i + 1);
        ofp_store_release(&handover->word, 2 * i + 2);
    }
    return NULL;
}

static uint64_t run_handovers(struct handover *handover)
{
    uint64_t started = ofpi_clock_read();

    for (uint64_t i = 0; i < handover->turns; i++) {
        ofp_store_release(&handover->word, 2 * i + 1);
        wait_for_count(handover, 2 * i + 2);
    }
    return ofpi_clock_read() - started;
}

static int bind_this_thread(uint32_t core)
{
    cpu_set_t cores;

    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    return pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
}

/*
 * Start the answering thread on one core, and bind this thread to another. A new thread inherits the cores of its creator;
 * musl has no pthread_attr_setaffinity_np. The first call tells whether the last one will succeed: by then the thread
 * spins. On an error no thread is left.
 */
static int start_threads_on_cores(pthread_t *other, uint32_t here, uint32_t there, struct handover *handover)
{
    int result = bind_this_thread(here);

    if (!result)
        result = bind_this_thread(there);
    if (!result)
        result = pthread_create(other, NULL, run_answering_thread, handover);
    if (!result)
        (void)bind_this_thread(here);
    return result;
}

int64_t ofp_measure_handover(uint32_t here, uint32_t there, uint64_t turns)
{
    struct handover handover = {.turns = turns};
    cpu_set_t before;
    pthread_t other;
    int64_t taken = 0;
    int result;

    /* Two threads that spin on one core would need a time slice for each turn. */
    if (here == there || here >= CPU_SETSIZE || there >= CPU_SETSIZE)
        return -EINVAL;
    result = pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
    if (result)
        return -result;
    result = start_threads_on_cores(&other, here, there, &handover);
    if (!result) {
        taken = (int64_t)run_handovers(&handover);
        pthread_join(other, NULL);
    }
    pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
    return result ? -result : taken;
}
