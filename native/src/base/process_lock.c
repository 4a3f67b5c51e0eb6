/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process_lock.h"

#include <stddef.h>

#include "base/log.h"
#include "ofipy/atomics.h"

#define REGISTERED_MAX 64

static pthread_mutex_t own[OFPI_LOCK_COUNT] = {
    [0 ... OFPI_LOCK_COUNT - 1] = PTHREAD_MUTEX_INITIALIZER,
};

/* Append only: a thread claims the first free place by writing its lock into it. */
static _Atomic(pthread_mutex_t *) registered[REGISTERED_MAX];

/* Locks that the current fork holds; guarded by the first of the core's own locks. */
static pthread_mutex_t *held[OFPI_LOCK_COUNT + REGISTERED_MAX];
static unsigned held_count;

void ofpi_process_lock_acquire(enum ofpi_process_lock which) { pthread_mutex_lock(&own[which]); }

void ofpi_process_lock_release(enum ofpi_process_lock which) { pthread_mutex_unlock(&own[which]); }

static pthread_mutex_t *find_registered_lock(unsigned place)
{
    /* Pairs with the release below: a thread that reads a lock from the list finds it initialised. */
    return place < REGISTERED_MAX ? ofp_load_acquire(&registered[place]) : NULL;
}

void ofpi_process_lock_register(pthread_mutex_t *lock)
{
    for (unsigned place = 0; place < REGISTERED_MAX; place++) {
        pthread_mutex_t *found = NULL;

        /*
         * An entry function may be called repeatedly, and by several threads at a time; fork must acquire each lock
         * only once.
         */
        if (ofp_replace(&registered[place], &found, lock) || found == lock)
            return;
    }
    ofpi_log_write(OFP_LOG_ERROR, "core", "%d locks are held across fork, and no more: a child may hang",
                   REGISTERED_MAX);
}

pthread_mutex_t *ofpi_process_lock_at(unsigned place)
{
    unsigned count = 0;

    if (place == OFPI_LOCK_PROVIDERS)
        return &own[place];
    while (find_registered_lock(count))
        count++;
    if (place <= count)
        return find_registered_lock(place - 1);
    return place - count < OFPI_LOCK_COUNT ? &own[place - count] : NULL;
}

/* -------------------------------------------------------------------------------------------------------------- fork */

static void acquire_lock(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    held[held_count++] = lock;
}

/* Threads that fork at the same time wait for each other here. */
static void acquire_all_locks(void)
{
    pthread_mutex_lock(&own[0]);
    held_count = 0;
    /* Locks that are registered from here on were not used yet, so they need not be held. */
    for (unsigned place = 0; find_registered_lock(place); place++)
        acquire_lock(find_registered_lock(place));
    for (unsigned which = 1; which < OFPI_LOCK_COUNT; which++)
        acquire_lock(&own[which]);
}

static void release_all_locks(void)
{
    while (held_count)
        pthread_mutex_unlock(held[--held_count]);
    pthread_mutex_unlock(&own[0]);
}

/* Runs when the library is loaded, because a lock may be acquired before any object is opened. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(acquire_all_locks, release_all_locks, release_all_locks);
}
