/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Named helpers over C11 atomics. Use only these to order accesses to memory that is shared with another thread or
 * process. A comment at each use says which use on the other side it pairs with.
 */
#ifndef OFIPY_ATOMICS_H
#define OFIPY_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All writes before it are visible to a thread that reads this value with a load-acquire. */
#define ofp_store_release(object, value) atomic_store_explicit((object), (value), memory_order_release)
#define ofp_load_acquire(object) atomic_load_explicit((object), memory_order_acquire)
/* No ordering: a hint, or a value that only one side writes and the same side reads. */
#define ofp_load_relaxed(object) atomic_load_explicit((object), memory_order_relaxed)
#define ofp_store_relaxed(object, value) atomic_store_explicit((object), (value), memory_order_relaxed)
/* Acquire ownership of the memory that the word guards: acquire order on success. */
#define ofp_claim(object, expected, desired)                                                                           \
    atomic_compare_exchange_strong_explicit((object), (expected), (desired), memory_order_acquire, memory_order_relaxed)
#define ofp_exchange(object, value) atomic_exchange_explicit((object), (value), memory_order_acq_rel)
/* Compare and exchange of a value that others update too. On failure `*expected` becomes the current value. */
#define ofp_replace(object, expected, desired)                                                                         \
    atomic_compare_exchange_strong_explicit((object), (expected), (desired), memory_order_acq_rel, memory_order_acquire)
#define ofp_fetch_add(object, value) atomic_fetch_add_explicit((object), (value), memory_order_acq_rel)
/*
 * The sleep handshake: each side writes its own word, executes this fence, then reads the other side's word. At least
 * one of the two then reads what the other wrote.
 */
#define ofp_sleep_fence() atomic_thread_fence(memory_order_seq_cst)

/*
 * The same handshake without a separate fence: one side publishes with ofp_publish, the other sets its bits with
 * ofp_set_bits, and each then reads the other's word with ofp_load_ordered. All three belong to the one total order of
 * sequentially consistent operations. On x86 the first two are one locked instruction and the load is a plain one.
 */
#define ofp_publish(object, value) ((void)atomic_exchange_explicit((object), (value), memory_order_seq_cst))
#define ofp_load_ordered(object) atomic_load_explicit((object), memory_order_seq_cst)
#define ofp_set_bits(object, bits) atomic_fetch_or_explicit((object), (bits), memory_order_seq_cst)
#define ofp_clear_bits(object, bits) atomic_fetch_and_explicit((object), ~(bits), memory_order_seq_cst)

/*
 * Orders reads before it, of data that another process may change, before reads after it, of the word that says whether
 * the data changed. The thread sanitizer cannot model fences, and checks threads only, so it gets none.
 */
static inline void ofp_read_fence(void)
{
#if !defined(__SANITIZE_THREAD__)
    atomic_thread_fence(memory_order_acquire);
#endif
}

/*
 * Orders writes before it, of the word that says that data changes, before writes after it, of that data. Pairs with a
 * read fence; the thread sanitizer gets none, as there.
 */
static inline void ofp_write_fence(void)
{
#if !defined(__SANITIZE_THREAD__)
    atomic_thread_fence(memory_order_release);
#endif
}

static inline void ofp_spin_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
