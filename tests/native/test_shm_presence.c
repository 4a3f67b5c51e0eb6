/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a receiver waits for fragments, by a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "message/presence.h"

/* ns; what attach would take for the rest of the message */
#define FETCH UINT64_C(70000)

static uint64_t clock_ns;

static uint64_t read_clock(void) { return clock_ns; }

static const struct ofp_core fake_core = {.now = read_clock};

struct pair {
    struct shm_header header; /* the sender's */
    struct shm_endpoint endpoint;
    struct shm_link link;
};

static int set_up(void **state)
{
    struct pair *pair = test_calloc(1, sizeof(*pair));

    shm_core = &fake_core;
    clock_ns = 1000000;
    pair->link.endpoint = &pair->endpoint;
    pair->link.ring.header = &pair->header;
    *state = pair;
    return 0;
}

static int tear_down(void **state)
{
    test_free(*state);
    return 0;
}

static bool check_after(struct pair *pair, uint64_t ns)
{
    clock_ns += ns;
    return shm_presence_check(&pair->link, FETCH);
}

static void an_absent_sender_is_waited_for_as_long_as_attach_takes(void **state)
{
    struct pair *pair = *state;

    shm_presence_add_message(&pair->link);
    assert_true(check_after(pair, FETCH - 1));
    assert_false(check_after(pair, 1));
}

static void a_sender_that_looks_is_waited_for_longer(void **state)
{
    struct pair *pair = *state;
    uint64_t waited = 0;

    shm_presence_add_message(&pair->link);
    do {
        atomic_fetch_add(&pair->header.looks, 1);
        waited += 10000;
    } while (check_after(pair, 10000) && waited < 1000000);
    assert_int_equal(waited, 100000);
}

static void a_fragment_is_news_for_every_message(void **state)
{
    struct pair *pair = *state;

    shm_presence_add_message(&pair->link);
    for (int i = 0; i < 1000; i++) {
        shm_presence_count_fragment(&pair->link);
        assert_true(check_after(pair, FETCH - 1));
    }
    /* One that begins to wait now finds the sender where the others have last seen it. */
    clock_ns += FETCH - 1;
    shm_presence_add_message(&pair->link);
    assert_true(check_after(pair, 0));
    assert_false(check_after(pair, 1));
}

static void patience_begins_with_the_first_message(void **state)
{
    struct pair *pair = *state;

    shm_presence_add_message(&pair->link);
    shm_presence_remove_message(&pair->link);
    clock_ns += 100 * FETCH;
    shm_presence_add_message(&pair->link);
    assert_true(check_after(pair, FETCH - 1));
    assert_int_equal(pair->endpoint.pipelined, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_absent_sender_is_waited_for_as_long_as_attach_takes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sender_that_looks_is_waited_for_longer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_fragment_is_news_for_every_message, set_up, tear_down),
        cmocka_unit_test_setup_teardown(patience_begins_with_the_first_message, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("shm presence", tests, NULL, NULL);
}
