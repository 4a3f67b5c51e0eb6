/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that wait for others, by a clock that the test moves: which leave at once, and what lets the others go. */
#include "test_tcp_fixture.h"

#define TAG 7
/* Less than the time that a message waits, and more. */
#define SHORTLY 5000
#define LONGER 50000

static uint64_t now;
static char payload[1 << 16];

static uint64_t moved_clock(void) { return now; }

/* Two sides that are connected, after which the first's clock stands still. */
struct pair {
    struct side side, target;
    const struct ofp_core *core;
    struct ofp_core stopped;
};

static uint64_t sent(struct pair *pair)
{
    struct ofp_endpoint_statistics statistics;

    assert_int_equal(ofp_endpoint_statistics(pair->side.endpoint, &statistics), 0);
    return statistics.sends;
}

static void look(struct pair *pair) { ofp_domain_progress(pair->side.domain); }

static void send_one(struct pair *pair, uint64_t length, uint64_t flags)
{
    struct ofp_operation op = tagged(OFP_TSEND, pair->side.peer, TAG, payload, length, 0);

    op.flags = flags;
    post(&pair->side, op);
}

static int setup(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    uint8_t in = 0;

    if (!pair)
        return -1;
    tcp_side_open(&pair->side);
    tcp_side_open(&pair->target);
    sides_meet(&pair->side, &pair->target);
    post(&pair->target, tagged(OFP_TRECV, pair->target.peer, 0, &in, 1, 1));
    post(&pair->side, tagged(OFP_TSEND, pair->side.peer, 0, "x", 1, 1));
    next_completion(&pair->side, &pair->target);
    next_completion(&pair->target, &pair->side);
    now = ofpi_clock_read();
    pair->core = tcp_core;
    pair->stopped = *tcp_core;
    pair->stopped.now = moved_clock;
    tcp_core = &pair->stopped;
    look(pair);
    *state = pair;
    return 0;
}

static int teardown(void **state)
{
    struct pair *pair = *state;

    tcp_core = pair->core;
    side_close(&pair->side);
    side_close(&pair->target);
    free(pair);
    return 0;
}

static void test_the_first_since_a_look_leaves_at_once_and_the_others_with_the_next(void **state)
{
    const uint64_t sizes[] = {0, 8, 3000};
    struct pair *pair = *state;
    uint64_t before = sent(pair);

    for (int round = 0; round < 9; round++) {
        for (int number = 0; number < 4; number++) {
            send_one(pair, sizes[round / 3], 0);
            assert_int_equal(sent(pair), before + 1);
        }
        look(pair);
        assert_int_equal(sent(pair), before += 4);
    }
}

/* Who posts one now and then may never look. */
static void test_a_message_long_after_the_last_waits_for_nothing(void **state)
{
    struct pair *pair = *state;
    uint64_t before = sent(pair);

    for (uint64_t number = 1; number < 10; number++) {
        send_one(pair, 8, 0);
        assert_int_equal(sent(pair), before + number);
        now += LONGER;
    }
}

static void test_those_that_wait_leave_with_one_that_comes_late(void **state)
{
    struct pair *pair = *state;
    uint64_t before = sent(pair);

    for (int number = 0; number < 3; number++)
        send_one(pair, 8, 0);
    now += SHORTLY;
    send_one(pair, 8, 0);
    assert_int_equal(sent(pair), before + 1);
    now += LONGER;
    send_one(pair, 8, 0);
    assert_int_equal(sent(pair), before + 5);
}

static void test_an_inject_takes_those_along_that_wait(void **state)
{
    struct pair *pair = *state;
    uint64_t before = sent(pair);

    send_one(pair, 8, 0);
    send_one(pair, 8, 0);
    assert_int_equal(sent(pair), before + 1);
    send_one(pair, 8, OFP_INJECT);
    assert_int_equal(sent(pair), before + 3);
}

static void test_many_bytes_do_not_wait(void **state)
{
    struct pair *pair = *state;
    uint64_t before = sent(pair);
    int number = 0;

    /* A mebibyte at most. */
    while (sent(pair) < before + 2) {
        send_one(pair, sizeof(payload), 0);
        assert_in_range(++number, 1, 20);
    }
    assert_in_range(number, 10, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_first_since_a_look_leaves_at_once_and_the_others_with_the_next, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_message_long_after_the_last_waits_for_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_those_that_wait_leave_with_one_that_comes_late, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_inject_takes_those_along_that_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_bytes_do_not_wait, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
