/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Included before each source file of ofipy's C where threads are scheduled, by an option of the compiler: the release's
 * code knows nothing of it. Each atomic operation by which threads agree becomes a point, a pause of a spin a yield, and the
 * cheap clock the virtual one. Memory orders stay as they are; relaxed reads and writes are no points.
 */
#ifndef EXPLORE_POINTS_H
#define EXPLORE_POINTS_H

#include "ofipy/atomics.h"

void schedule_point(const char *function, const char *file, uint32_t line, const void *caller);
void schedule_yield(const char *function, const char *file, uint32_t line, const void *caller);
void schedule_note_write(void);
uint64_t schedule_read_clock(void);
int schedule_draw_bound(int most);

/* In some runs a round of progress handles one of each kind, so that what is left for the next round is common. */
#define OFP_ROUND_BOUND(most) schedule_draw_bound(most)

#define SCHEDULE_BEFORE(operation) (schedule_point(__func__, __FILE__, __LINE__, NULL), operation)
/* Behind it others see what this thread has done. */
#define SCHEDULE_BEFORE_WRITE(operation) (schedule_note_write(), SCHEDULE_BEFORE(operation))

#undef ofp_store_release
#define ofp_store_release(object, value)                                                                               \
    SCHEDULE_BEFORE_WRITE(atomic_store_explicit((object), (value), memory_order_release))
#undef ofp_load_acquire
#define ofp_load_acquire(object) SCHEDULE_BEFORE(atomic_load_explicit((object), memory_order_acquire))
#undef ofp_claim
#define ofp_claim(object, expected, desired)                                                                           \
    SCHEDULE_BEFORE(atomic_compare_exchange_strong_explicit((object), (expected), (desired), memory_order_acquire,     \
                                                            memory_order_relaxed))
#undef ofp_exchange
#define ofp_exchange(object, value) SCHEDULE_BEFORE(atomic_exchange_explicit((object), (value), memory_order_acq_rel))
#undef ofp_replace
#define ofp_replace(object, expected, desired)                                                                         \
    SCHEDULE_BEFORE(atomic_compare_exchange_strong_explicit((object), (expected), (desired), memory_order_acq_rel,     \
                                                            memory_order_acquire))
#undef ofp_fetch_add
#define ofp_fetch_add(object, value) SCHEDULE_BEFORE(atomic_fetch_add_explicit((object), (value), memory_order_acq_rel))
#undef ofp_publish
#define ofp_publish(object, value)                                                                                     \
    SCHEDULE_BEFORE_WRITE((void)atomic_exchange_explicit((object), (value), memory_order_seq_cst))
#undef ofp_load_ordered
#define ofp_load_ordered(object) SCHEDULE_BEFORE(atomic_load_explicit((object), memory_order_seq_cst))
#undef ofp_set_bits
#define ofp_set_bits(object, bits) SCHEDULE_BEFORE(atomic_fetch_or_explicit((object), (bits), memory_order_seq_cst))
#undef ofp_clear_bits
#define ofp_clear_bits(object, bits) SCHEDULE_BEFORE(atomic_fetch_and_explicit((object), ~(bits), memory_order_seq_cst))
#define ofp_spin_pause() schedule_yield(__func__, __FILE__, __LINE__, NULL)

/* In place of base/ticks.h. */
#define OFPI_TICKS_H
#define ofpi_ticks_read() (schedule_read_clock() * 2)

/* Locks of domains, for their order. What does not wait gives no order. */
#include "base/lock.h"

void schedule_note_wanted(const void *lock, const char *function);
void schedule_note_acquired(const void *lock);
void schedule_note_released(const void *lock);

#define ofpi_lock_acquire(lock)                                                                                        \
    (schedule_note_wanted((lock), __func__), ofpi_lock_acquire(lock), schedule_note_acquired(lock))
#define ofpi_lock_try(lock) (ofpi_lock_try(lock) && (schedule_note_acquired(lock), true))
#define ofpi_lock_release(lock) (schedule_note_released(lock), ofpi_lock_release(lock))

#endif
