/* SPDX-License-Identifier: BSD-3-Clause */
/* The explorer of memory_model.h against litmus tests whose outcomes C11 allows or forbids. */
#include "memory_model.h"

#include "ofipy/atomics.h"

static _Atomic uint64_t x, y;
static memory_order first, second; /* the orders of stores and of loads */
static bool fences, reached, (*wanted)(void);

#define ORDERED memory_order_seq_cst
#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release

static void put(_Atomic uint64_t *at, uint64_t value) { atomic_store_explicit(at, value, first); }
static uint64_t get(_Atomic uint64_t *at) { return atomic_load_explicit(at, second); }
static uint64_t got(int thread, int which) { return model_results[thread][which]; }
static void barrier(memory_order order)
{
    if (fences)
        atomic_thread_fence(order);
}

static const char *note(void)
{
    reached = reached || wanted();
    return NULL;
}

/* Whether some execution has the outcome. */
static bool reaches_four(void (*const threads[4])(void), bool (*outcome)(void), memory_order stores, memory_order loads,
                         bool fenced)
{
    struct model_program program = {
        .threads = {NULL, threads[0], threads[1], threads[2], threads[3]}, .end = note, .fences = fenced};

    first = stores;
    second = loads;
    fences = fenced;
    wanted = outcome;
    reached = false;
    assert_null(model_explore(&program, 1 << 18, 0));
    assert_false(model_full);
    assert_true(model_ends > 0);
    return reached;
}

static bool reaches(void (*a)(void), void (*b)(void), void (*c)(void), bool (*outcome)(void), memory_order stores,
                    memory_order loads, bool fenced)
{
    return reaches_four((void (*const[4])(void)){a, b, c}, outcome, stores, loads, fenced);
}

static void sb_x(void) { put(&x, 1), barrier(ORDERED), model_result(0, get(&y)); }
static void sb_y(void) { put(&y, 1), barrier(ORDERED), model_result(0, get(&x)); }
static bool both_old(void) { return !got(1, 0) && !got(2, 0); }

static void test_store_buffering(void **state)
{
    (void)state;
    assert_true(reaches(sb_x, sb_y, NULL, both_old, RELAXED, RELAXED, false));
    assert_true(reaches(sb_x, sb_y, NULL, both_old, RELEASE, ACQUIRE, false));
    assert_true(reaches(sb_x, sb_y, NULL, both_old, ORDERED, ACQUIRE, false));
    assert_true(reaches(sb_x, sb_y, NULL, both_old, RELEASE, ORDERED, false));
    assert_false(reaches(sb_x, sb_y, NULL, both_old, ORDERED, ORDERED, false));
    assert_false(reaches(sb_x, sb_y, NULL, both_old, RELAXED, RELAXED, true));
}

static void mp_write(void)
{
    atomic_store_explicit(&x, 1, RELAXED);
    barrier(RELEASE);
    put(&y, 1);
}
static void mp_read(void)
{
    model_result(0, get(&y));
    barrier(ACQUIRE);
    model_result(1, atomic_load_explicit(&x, RELAXED));
}
static bool stale(void) { return got(2, 0) && !got(2, 1); }

static void test_message_passing(void **state)
{
    (void)state;
    assert_true(reaches(mp_write, mp_read, NULL, stale, RELAXED, RELAXED, false));
    assert_true(reaches(mp_write, mp_read, NULL, stale, RELEASE, RELAXED, false));
    assert_true(reaches(mp_write, mp_read, NULL, stale, RELAXED, ACQUIRE, false));
    assert_false(reaches(mp_write, mp_read, NULL, stale, RELEASE, ACQUIRE, false));
    assert_false(reaches(mp_write, mp_read, NULL, stale, RELAXED, RELAXED, true));
}

/* A release sequence goes on through a read-modify-write of another thread, and is ended by its plain store. */
static void pass_on(void) { ((void)atomic_fetch_add_explicit(&y, 1, RELAXED)); }
static void overwrite(void) { atomic_store_explicit(&y, 2, RELAXED); }
static void chain_read(void)
{
    model_result(0, get(&y) == 2);
    model_result(1, atomic_load_explicit(&x, RELAXED));
}

static void test_release_sequence(void **state)
{
    (void)state;
    assert_false(reaches(mp_write, chain_read, pass_on, stale, RELEASE, ACQUIRE, false));
    assert_true(reaches(mp_write, chain_read, overwrite, stale, RELEASE, ACQUIRE, false));
}

static void write_x(void) { put(&x, 1); }
static void write_y(void) { put(&y, 1); }
static void read_twice(void) { model_result(0, get(&x)), model_result(1, get(&x)); }
static bool other_order(void) { return got(2, 0) == 1 && got(2, 1) == 0; }
static bool new_then_new(void) { return got(2, 0) == 1 && got(2, 1) == 1; }

static void test_coherence_of_two_reads(void **state)
{
    (void)state;
    assert_false(reaches(write_x, read_twice, NULL, other_order, RELAXED, RELAXED, false));
    assert_true(reaches(write_x, read_twice, NULL, new_then_new, RELAXED, RELAXED, false));
}

static void twice_x(void) { put(&x, 1), put(&y, 2); }
static void twice_y(void) { put(&y, 1), put(&x, 2); }
static bool first_stores_stay(void) { return model_final(&x) == 1 && model_final(&y) == 1; }

static void test_two_by_two_writes(void **state)
{
    (void)state;
    assert_true(reaches(twice_x, twice_y, NULL, first_stores_stay, RELAXED, RELAXED, false));
    assert_true(reaches(twice_x, twice_y, NULL, first_stores_stay, RELEASE, RELAXED, false));
    assert_false(reaches(twice_x, twice_y, NULL, first_stores_stay, ORDERED, RELAXED, false));
}

static void read_xy(void) { model_result(0, get(&x)), barrier(ORDERED), model_result(1, get(&y)); }
static void write_y_read_x(void) { put(&y, 1), barrier(ORDERED), model_result(0, get(&x)); }
static bool disagree(void) { return got(2, 0) == 1 && got(2, 1) == 0 && got(3, 0) == 0; }

static void test_write_to_read_causality(void **state)
{
    (void)state;
    assert_true(reaches(write_x, read_xy, write_y_read_x, disagree, RELEASE, ACQUIRE, false));
    assert_false(reaches(write_x, read_xy, write_y_read_x, disagree, ORDERED, ORDERED, false));
    assert_false(reaches(write_x, read_xy, write_y_read_x, disagree, RELAXED, RELAXED, true));
}

/* Independent reads of independent writes. */
static void read_yx(void) { model_result(0, get(&y)), barrier(ORDERED), model_result(1, get(&x)); }
static bool readers_disagree(void) { return got(2, 0) && !got(2, 1) && got(4, 0) && !got(4, 1); }

static void test_independent_reads(void **state)
{
    void (*const threads[4])(void) = {write_x, read_xy, write_y, read_yx};

    (void)state;
    assert_true(reaches_four(threads, readers_disagree, RELEASE, ACQUIRE, false));
    assert_false(reaches_four(threads, readers_disagree, ORDERED, ORDERED, false));
    assert_false(reaches_four(threads, readers_disagree, RELAXED, RELAXED, true));
}

static void add(void) { model_result(0, atomic_fetch_add_explicit(&x, 1, RELAXED)); }
static bool same_value(void) { return got(1, 0) == got(2, 0) || model_final(&x) != 2; }

static void test_read_modify_writes_are_atomic(void **state)
{
    (void)state;
    assert_false(reaches(add, add, NULL, same_value, RELAXED, RELAXED, false));
}

/* A relaxed access that follows a sequentially consistent one may pass it: S is no order of execution. */
static void ordered_then_plain(void) { atomic_store_explicit(&x, 1, ORDERED), atomic_store_explicit(&y, 1, RELAXED); }
static void plain_then_ordered(void)
{
    model_result(0, atomic_load_explicit(&y, RELAXED));
    model_result(1, atomic_load_explicit(&x, ORDERED));
}

static void test_order_is_not_the_order_of_execution(void **state)
{
    (void)state;
    assert_true(reaches(ordered_then_plain, plain_then_ordered, NULL, stale, ORDERED, ORDERED, false));
}

static void touch_write(void) { model_write(0, 1), put(&x, 1); }
static void touch_read(void)
{
    if (get(&x))
        model_result(0, model_read(0));
}

static void test_data_races(void **state)
{
    struct model_program program = {.threads = {NULL, touch_write, touch_read}};

    (void)state;
    first = RELEASE, second = ACQUIRE;
    assert_null(model_explore(&program, 1 << 12, 0));
    first = RELAXED;
    assert_non_null(model_explore(&program, 1 << 12, 0));
    first = RELEASE, second = RELAXED;
    assert_non_null(model_explore(&program, 1 << 12, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_buffering),
        cmocka_unit_test(test_message_passing),
        cmocka_unit_test(test_release_sequence),
        cmocka_unit_test(test_coherence_of_two_reads),
        cmocka_unit_test(test_two_by_two_writes),
        cmocka_unit_test(test_write_to_read_causality),
        cmocka_unit_test(test_independent_reads),
        cmocka_unit_test(test_read_modify_writes_are_atomic),
        cmocka_unit_test(test_order_is_not_the_order_of_execution),
        cmocka_unit_test(test_data_races),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
