/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The domain's lock: one word, spin for a moment, then sleep on a futex.
 *
 * `waiters` counts threads that want it, so that a thread which polls with the lock held knows when to let go: the
 * lock itself is not fair.
 */
#ifndef OFPI_LOCK_H
#define OFPI_LOCK_H

#include "base/check.h"
#include "ofipy/atomics.h"

struct ofpi_lock {
    _Atomic uint32_t word; /* 0 free, 1 held, 2 held and somebody may sleep on it */
    _Atomic uint32_t waiters;
};

/* Not inline: the contended case. */
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

/* By this thread or another one. */
static inline bool ofpi_lock_is_held(struct ofpi_lock *lock) { return ofp_load_relaxed(&lock->word) != 0; }

static inline bool ofpi_lock_wanted(struct ofpi_lock *lock) { return ofp_load_relaxed(&lock->waiters) != 0; }

#endif
