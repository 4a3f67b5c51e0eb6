/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The time to spin is longer than a short critical section, and shorter than a sleep and a wake-up. */
#define SPINS 200

void ofpi_lock_wait(struct ofpi_lock *lock)
{
    atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_relaxed);
    for (int spin = 0; spin < SPINS; spin++) {
        uint32_t expected = 0;

        if (ofp_load_relaxed(&lock->word) == 0 && ofp_claim(&lock->word, &expected, 1))
            goto taken;
        ofp_spin_pause();
    }
    /* Set the word to 2, so that the holder wakes this thread. At worst this causes one needless wake-up. */
    while (ofp_exchange(&lock->word, 2) != 0)
        syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
taken:
    atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
}

void ofpi_lock_wake(struct ofpi_lock *lock) { syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }
