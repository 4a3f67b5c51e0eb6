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

/* Start a thread that is bound to the core; an error if it cannot be bound. */
static int start_thread_on_core(pthread_t *thread, uint32_t core, struct handover *handover)
{
    pthread_attr_t attr;
    cpu_set_t cores;
    int result = pthread_attr_init(&attr);

    if (result)
        return result;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    result = pthread_attr_setaffinity_np(&attr, sizeof(cores), &cores);
    if (!result)
        result = pthread_create(thread, &attr, run_answering_thread, handover);
    pthread_attr_destroy(&attr);
    return result;
}

int64_t ofp_measure_handover(uint32_t here, uint32_t there, uint64_t turns)
{
    struct handover handover = {.turns = turns};
    cpu_set_t before, own;
    pthread_t other;
    int64_t taken = 0;
    int result;

    /* Two threads that spin on one core would need a time slice for each turn. */
    if (here == there || here >= CPU_SETSIZE || there >= CPU_SETSIZE)
        return -EINVAL;
    CPU_ZERO(&own);
    CPU_SET(here, &own);
    result = pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
    if (!result)
        result = pthread_setaffinity_np(pthread_self(), sizeof(own), &own);
    if (result)
        return -result;
    result = start_thread_on_core(&other, there, &handover);
    if (!result) {
        taken = (int64_t)run_handovers(&handover);
        pthread_join(other, NULL);
    }
    pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
    return result ? -result : taken;
}
