/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The domain's lock: one word; waiters spin briefly, then sleep on a futex.
 *
 * `waiters` counts threads that wait for the lock. A thread that polls with the lock held checks it to know when to
 * release the lock, because the lock itself is not fair.
 */
#ifndef OFPI_LOCK_H
#define OFPI_LOCK_H

#include "base/check.h"
#include "ofipy/atomics.h"

struct ofpi_lock {
    _Atomic uint32_t word; /* 0: free; 1: held; 2: held, and a waiter may sleep on it */
    _Atomic uint32_t waiters;
};

/* The contended case, not inline. */
void ofpi_lock_wait(struct ofpi_lock *lock);
void ofpi_lock_wake(struct ofpi_lock *lock);

static inline void ofpi_lock_acquire(struct ofpi_lock *lock)
{
    uint32_t expected = 0;

    /* Pairs with the release below: what the last holder wrote is visible. */
    if (!ofp_claim(&lock->word, &expected, 1))
        ofpi_lock_wait(lock);
}

static inline bool ofpi_lock_try(struct ofpi_lock *lock)
{
    uint32_t expected = 0;

    /* Pairs with the release below, as above. */
    return ofp_claim(&lock->word, &expected, 1);
}

static inline void ofpi_lock_release(struct ofpi_lock *lock)
{
    OFPI_CHECK(ofp_load_relaxed(&lock->word));
    if (ofp_exchange(&lock->word, 0) == 2)
        ofpi_lock_wake(lock);
}

/* Whether this thread or another one holds it. */
static inline bool ofpi_lock_is_held(struct ofpi_lock *lock) { return ofp_load_relaxed(&lock->word) != 0; }

static inline bool ofpi_lock_wanted(struct ofpi_lock *lock) { return ofp_load_relaxed(&lock->waiters) != 0; }

#endif
