/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process_lock.h"

#include <stddef.h>

#include "base/log.h"
#include "ofipy/atomics.h"

#define REGISTERED_MAX 64

static pthread_mutex_t own[OFPI_LOCK_COUNT] = {
    [0 ... OFPI_LOCK_COUNT - 1] = PTHREAD_MUTEX_INITIALIZER,
};

/* Only appended to: a place is claimed by its number, then filled in. */
static _Atomic(pthread_mutex_t *) registered[REGISTERED_MAX];
static _Atomic uint32_t registered_count;

/* What the fork under way holds; guarded by the first of the own locks. */
static pthread_mutex_t *held[OFPI_LOCK_COUNT + REGISTERED_MAX];
static unsigned held_count;

void ofpi_process_lock_acquire(enum ofpi_process_lock which) { pthread_mutex_lock(&own[which]); }

void ofpi_process_lock_release(enum ofpi_process_lock which) { pthread_mutex_unlock(&own[which]); }

static pthread_mutex_t *registered_at(unsigned place)
{
    /* Pairs with the store-release below: whoever finds a lock finds it initialised. */
    return place < REGISTERED_MAX ? ofp_load_acquire(&registered[place]) : NULL;
}

void ofpi_process_lock_register(pthread_mutex_t *lock)
{
    uint32_t place;

    /* An entry function may be called again. */
    for (place = 0; registered_at(place); place++)
        if (registered_at(place) == lock)
            return;
    place = ofp_fetch_add(&registered_count, 1);
    if (place < REGISTERED_MAX)
        ofp_store_release(&registered[place], lock);
    else
        ofpi_log(OFP_LOG_ERROR, "core", "%d locks are held across fork, and no more: a child may hang", REGISTERED_MAX);
}

pthread_mutex_t *ofpi_process_lock_at(unsigned place)
{
    unsigned count = 0;

    if (place == OFPI_LOCK_PROVIDERS)
        return &own[place];
    while (registered_at(count))
        count++;
    if (place <= count)
        return registered_at(place - 1);
    return place - count < OFPI_LOCK_COUNT ? &own[place - count] : NULL;
}

/* -------------------------------------------------------------------------------------------------------------- fork */

static void hold(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    held[held_count++] = lock;
}

/* Threads that fork at the same time wait here for each other. */
static void hold_all(void)
{
    pthread_mutex_lock(&own[0]);
    held_count = 0;
    /* A lock that is registered meanwhile was not used yet. */
    for (unsigned place = 0; registered_at(place); place++)
        hold(registered_at(place));
    for (unsigned which = 1; which < OFPI_LOCK_COUNT; which++)
        hold(&own[which]);
}

static void release_all(void)
{
    while (held_count)
        pthread_mutex_unlock(held[--held_count]);
    pthread_mutex_unlock(&own[0]);
}

/* As the library is loaded: a lock may be taken before anything is opened. */
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(hold_all, release_all, release_all); }
