/* SPDX-License-Identifier: BSD-3-Clause */
/* The executor under many threads: nothing is lost, nothing is torn, no two wait for each other, and fork is harmless. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atomic/atomic.h"
#include "object/domain.h"

enum { THREADS = 4, ROUNDS = 20000, PAGE = 4096 };

/* Start `run` on THREADS threads, each with its index, and wait for all. */
static void together(void *(*run)(void *))
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* Two counters: the processor updates one, and one that is not aligned is updated under locks. */
static _Alignas(8) char cells[24];
static char *cell;
static uint64_t fetched[THREADS * ROUNDS];

static void *add_ones(void *argument)
{
    uint64_t *mine = fetched + (uintptr_t)argument * ROUNDS, one = 1;

    for (int i = 0; i < ROUNDS; i++)
        ofpi_atomic_execute(OFP_FETCH_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, cell, &one, NULL, &mine[i], 1);
    return NULL;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static int open_aligned(void **state)
{
    (void)state;
    memset(cells, 0, sizeof(cells));
    cell = cells + 8;
    return 0;
}

static int open_unaligned(void **state)
{
    open_aligned(state);
    cell = cells + 3;
    return 0;
}

static uint64_t value_of(const char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static void test_every_fetched_value_is_distinct(void **state)
{
    (void)state;
    together(add_ones);
    assert_int_equal(value_of(cell), THREADS * ROUNDS);
    qsort(fetched, THREADS * ROUNDS, sizeof(fetched[0]), compare);
    for (uint64_t i = 0; i < THREADS * ROUNDS; i++)
        assert_int_equal(fetched[i], i);
}

/* A counter kept by compare and swap: each thread tries until it was the one. */
static void *swap_ones(void *argument)
{
    uint64_t known = 0, next, before;

    (void)argument;
    for (int i = 0; i < ROUNDS / 4; i++)
        for (;; known = before) {
            next = known + 1;
            ofpi_atomic_execute(OFP_COMPARE_ATOMIC, OFP_ATOMIC_CSWAP, OFP_UINT64, cell, &next, &known, &before, 1);
            if (before == known)
                break;
        }
    return NULL;
}

static void test_compare_and_swap_loses_none(void **state)
{
    (void)state;
    together(swap_ones);
    assert_int_equal(value_of(cell), THREADS * (ROUNDS / 4));
}

/* The owner of the memory, with atomics of C, beside executors of another type of operation. */
static void *add_somehow(void *argument)
{
    uintptr_t index = (uintptr_t)argument;
    uint64_t one = 1, less = UINT64_MAX;
    double half = 0.5;

    for (int i = 0; i < ROUNDS; i++) {
        if (index == 0)
            ofp_fetch_add((_Atomic uint64_t *)(void *)cell, 1);
        else
            ofpi_atomic_execute(OFP_ATOMIC, index == 1 ? OFP_ATOMIC_SUM : OFP_ATOMIC_DIFF, OFP_UINT64, cell,
                                index == 1 ? &one : &less, NULL, NULL, 1);
        ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_DOUBLE, cell + 8, &half, NULL, NULL, 1);
    }
    return NULL;
}

static void test_the_owner_adds_with_atomics_of_c(void **state)
{
    double halves;

    (void)state;
    together(add_somehow);
    assert_int_equal(value_of(cell), THREADS * ROUNDS);
    memcpy(&halves, cell + 8, sizeof(halves));
    assert_true(halves == THREADS * ROUNDS * 0.5);
}

/* Two pages that start on a page, so that elements lie where the test wants them among the locks. */
static char *pages;

static int open_pages(void **state)
{
    (void)state;
    pages = aligned_alloc(PAGE, (size_t)2 * PAGE);
    if (!pages)
        return -1;
    memset(pages, 0, (size_t)2 * PAGE);
    return 0;
}

static int close_pages(void **state)
{
    (void)state;
    free(pages);
    return 0;
}

/*
 * Four elements, each of which overlaps the next, around the end of the first page, where the locks start again: the second
 * lies on both sides of it.
 */
static void *flip(void *argument)
{
    uintptr_t index = (uintptr_t)argument;

    for (int i = 0; i < ROUNDS + (int)index; i++) {
        uint64_t bits = 0x0101010101010101u << index;

        ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_BXOR, OFP_UINT64, pages + PAGE - 6 + index * 4, &bits, NULL, NULL,
                            1);
    }
    return NULL;
}

static void test_overlapping_elements_are_one_step_each(void **state)
{
    char wanted[20] = {0};

    (void)state;
    together(flip);
    /* Threads 1 and 3 flip an odd number of times. */
    for (int index = 1; index < THREADS; index += 2)
        for (int i = 0; i < 8; i++)
            wanted[index * 4 + i] ^= (char)(1 << index);
    assert_memory_equal(pages + PAGE - 6, wanted, sizeof(wanted));
}

/* Vectors of PIECE elements that together cover nearly both pages, four bytes off alignment. */
enum { PIECE = 62, PIECES = 16 };

/* Each thread goes round from another start, the odd ones backwards: they meet at every lock, coming from both sides. */
static void *add_vectors(void *argument)
{
    uintptr_t index = (uintptr_t)argument;
    uint64_t ones[PIECE], seen[PIECE * PIECES];

    for (int i = 0; i < PIECE; i++)
        ones[i] = 1;
    for (uintptr_t i = 0; i < ROUNDS / 10; i++) {
        uintptr_t piece = (index * 5 + (index % 2 ? ROUNDS - i : i)) % PIECES;

        ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, pages + 4 + piece * PIECE * 8, ones, NULL, NULL,
                            PIECE);
        if (piece == 0)
            ofpi_atomic_execute(OFP_FETCH_ATOMIC, OFP_ATOMIC_READ, OFP_UINT64, pages + 4, NULL, NULL, seen,
                                PIECE * PIECES);
    }
    return NULL;
}

static void test_vectors_over_many_locks(void **state)
{
    uint64_t value;

    (void)state;
    together(add_vectors);
    for (int i = 0; i < PIECE * PIECES; i++) {
        memcpy(&value, pages + 4 + (size_t)i * 8, 8);
        assert_int_equal(value, THREADS * (ROUNDS / 10 / PIECES));
    }
}

/* The same memory under two addresses: its locks are the same, and the processor minds neither. */
enum { UNALIGNED = 1234, ALIGNED = 2048 };
static char *views[2];

static void *add_to_view(void *argument)
{
    uintptr_t index = (uintptr_t)argument;
    uint64_t one = 1;

    for (int i = 0; i < ROUNDS; i++)
        ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, views[index % 2] + UNALIGNED, &one, NULL, NULL, 1);
    for (int i = 0; i < ROUNDS; i++)
        ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, views[index % 2] + ALIGNED, &one, NULL, NULL, 1);
    return NULL;
}

static void test_memory_mapped_twice(void **state)
{
    int fd = memfd_create("atomic", MFD_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, PAGE), 0);
    for (int i = 0; i < 2; i++) {
        views[i] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_ptr_not_equal(views[i], MAP_FAILED);
    }
    together(add_to_view);
    assert_int_equal(value_of(views[0] + UNALIGNED), THREADS * ROUNDS);
    assert_int_equal(value_of(views[0] + ALIGNED), THREADS * ROUNDS);
    munmap(views[0], PAGE);
    munmap(views[1], PAGE);
    close(fd);
}

static _Atomic bool stop;

static void *add_until_stopped(void *argument)
{
    uint64_t one = 1;

    (void)argument;
    while (!ofp_load_relaxed(&stop))
        ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, cell, &one, NULL, NULL, 1);
    return NULL;
}

/* A child is often made while the other thread holds a lock; it must not inherit it. */
static void test_a_forked_child_finds_the_locks_free(void **state)
{
    pthread_t thread;

    (void)state;
    ofpi_fork_watch();
    ofp_store_relaxed(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, add_until_stopped, NULL), 0);
    for (int i = 0; i < 40; i++) {
        uint64_t one = 1;
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            alarm(20);
            _exit(ofpi_atomic_execute(OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, cell, &one, NULL, NULL, 1));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    ofp_store_relaxed(&stop, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_fetched_value_is_distinct, open_aligned),
        cmocka_unit_test_setup(test_every_fetched_value_is_distinct, open_unaligned),
        cmocka_unit_test_setup(test_compare_and_swap_loses_none, open_aligned),
        cmocka_unit_test_setup(test_compare_and_swap_loses_none, open_unaligned),
        cmocka_unit_test_setup(test_the_owner_adds_with_atomics_of_c, open_aligned),
        cmocka_unit_test_setup_teardown(test_overlapping_elements_are_one_step_each, open_pages, close_pages),
        cmocka_unit_test_setup_teardown(test_vectors_over_many_locks, open_pages, close_pages),
        cmocka_unit_test(test_memory_mapped_twice),
        cmocka_unit_test_setup(test_a_forked_child_finds_the_locks_free, open_unaligned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
