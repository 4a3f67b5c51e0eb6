/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/timer.h"

enum { TIMERS = 200 };

static struct ofpi_timers timers;
static struct ofp_timer set[TIMERS];
static struct ofp_timer *fired[4 * TIMERS];
static int fired_count;

static void note(struct ofp_timer *timer, uint64_t now)
{
    assert_true(timer->deadline <= now);
    assert_int_equal(timer->position, 0);
    fired[fired_count++] = timer;
}

/* Of so many calls in a row that ask for memory one gets it; 0: none does. */
static unsigned one_succeeds_in = 1;

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
    static unsigned calls;

    return one_succeeds_in && ++calls % one_succeeds_in == 0 ? __real_realloc(memory, size) : NULL;
}

static int open_timers(void **state)
{
    (void)state;
    ofpi_timers_init(&timers);
    for (int i = 0; i < TIMERS; i++)
        set[i] = (struct ofp_timer){.expired = note};
    fired_count = 0;
    one_succeeds_in = 1;
    return 0;
}

static int close_timers(void **state)
{
    (void)state;
    ofpi_timers_close(&timers);
    return 0;
}

static void start(struct ofp_timer *timer, uint64_t deadline)
{
    timer->deadline = deadline;
    ofpi_timers_start(&timers, timer);
}

static void test_fires_what_is_due_earliest_first(void **state)
{
    (void)state;
    assert_int_equal(ofpi_timers_find_deadline(&timers), UINT64_MAX);
    start(&set[0], 30);
    start(&set[1], 10);
    start(&set[2], 20);
    assert_int_equal(ofpi_timers_find_deadline(&timers), 10);
    assert_int_equal(ofpi_timers_run(&timers, 9), 0);
    assert_int_equal(ofpi_timers_run(&timers, 20), 2);
    assert_ptr_equal(fired[0], &set[1]);
    assert_ptr_equal(fired[1], &set[2]);
    assert_int_equal(ofpi_timers_find_deadline(&timers), 30);
    assert_int_equal(ofpi_timers_run(&timers, 20), 0);
    assert_int_equal(ofpi_timers_run(&timers, UINT64_MAX), 1);
    assert_int_equal(ofpi_timers_find_deadline(&timers), UINT64_MAX);
}

static void test_restart_moves_either_way(void **state)
{
    (void)state;
    start(&set[0], 10);
    start(&set[1], 20);
    start(&set[2], 30);
    start(&set[0], 40);
    start(&set[2], 5);
    assert_int_equal(timers.count, 3);
    assert_int_equal(ofpi_timers_run(&timers, 50), 3);
    assert_ptr_equal(fired[0], &set[2]);
    assert_ptr_equal(fired[1], &set[1]);
    assert_ptr_equal(fired[2], &set[0]);
}

static void test_stop_is_harmless_when_not_running(void **state)
{
    (void)state;
    ofpi_timers_stop(&timers, &set[0]);
    start(&set[0], 1);
    ofpi_timers_stop(&timers, &set[0]);
    ofpi_timers_stop(&timers, &set[0]);
    assert_int_equal(ofpi_timers_run(&timers, 10), 0);
}

static void restart_at_once(struct ofp_timer *timer, uint64_t now)
{
    note(timer, now);
    start(timer, now);
}

static void test_callback_that_restarts_does_not_hold_the_loop(void **state)
{
    (void)state;
    set[0].expired = restart_at_once;
    start(&set[0], 10);
    start(&set[1], 10);
    assert_int_equal(ofpi_timers_run(&timers, 10), 2);
    assert_int_equal(ofpi_timers_find_deadline(&timers), 10);
}

static void stop_neighbour(struct ofp_timer *timer, uint64_t now)
{
    note(timer, now);
    ofpi_timers_stop(&timers, timer + 1);
    start(timer + 2, now + 5);
}

static void test_callback_stops_and_starts_others(void **state)
{
    (void)state;
    set[0].expired = stop_neighbour;
    start(&set[0], 1);
    start(&set[1], 2);
    assert_int_equal(ofpi_timers_run(&timers, 10), 1);
    assert_int_equal(set[1].position, 0);
    assert_int_equal(ofpi_timers_find_deadline(&timers), 15);
}

/* Random starts, restarts, stops and runs: what fires is what a plain scan says. */
static void check_random_use(void)
{
    uint64_t model[TIMERS], now = 0; /* 0: not running */
    unsigned seed = 7;

    for (int i = 0; i < TIMERS; i++)
        model[i] = 0;
    for (int step = 0; step < 20000; step++) {
        int which = rand_r(&seed) % TIMERS;
        int due = 0;

        if (rand_r(&seed) % 4) {
            model[which] = now + 1 + (uint64_t)(rand_r(&seed) % 1000);
            start(&set[which], model[which]);
        } else {
            model[which] = 0;
            ofpi_timers_stop(&timers, &set[which]);
        }
        if (step % 10)
            continue;
        now += (uint64_t)(rand_r(&seed) % 100);
        for (int i = 0; i < TIMERS; i++) {
            if (model[i] && model[i] <= now) {
                model[i] = 0;
                due++;
            }
        }
        fired_count = 0;
        assert_int_equal(ofpi_timers_run(&timers, now), due);
        for (int i = 1; i < fired_count; i++)
            assert_true(fired[i - 1]->deadline <= fired[i]->deadline);
        for (int i = 0; i < TIMERS; i++)
            assert_int_equal(set[i].position != 0, model[i] != 0);
    }
}

static void test_random_use_against_a_model(void **state)
{
    (void)state;
    check_random_use();
}

static void test_timers_start_without_memory(void **state)
{
    (void)state;
    one_succeeds_in = 0;
    check_random_use();
    assert_null(timers.heap);
}

static void test_timers_start_while_memory_is_short(void **state)
{
    (void)state;
    one_succeeds_in = 1000;
    check_random_use();
    assert_true(timers.capacity > 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fires_what_is_due_earliest_first, open_timers, close_timers),
        cmocka_unit_test_setup_teardown(test_restart_moves_either_way, open_timers, close_timers),
        cmocka_unit_test_setup_teardown(test_stop_is_harmless_when_not_running, open_timers, close_timers),
        cmocka_unit_test_setup_teardown(test_callback_that_restarts_does_not_hold_the_loop, open_timers, close_timers),
        cmocka_unit_test_setup_teardown(test_callback_stops_and_starts_others, open_timers, close_timers),
        cmocka_unit_test_setup_teardown(test_random_use_against_a_model, open_timers, close_timers),
        cmocka_unit_test_setup_teardown(test_timers_start_without_memory, open_timers, close_timers),
        cmocka_unit_test_setup_teardown(test_timers_start_while_memory_is_short, open_timers, close_timers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
