/* SPDX-License-Identifier: BSD-3-Clause */
/* The hook `fault`, over both kinds of the fake's endpoints. */
#include "hook_fixture.h"

#define MS 1000000ull

/* Sends `count` messages to itself and receives them; which of the sends failed, a bit each. */
static uint64_t exchange(struct side *side, uint32_t count, int error)
{
    uint64_t failed = 0;
    char out[8] = "faults", in[8];

    for (uint32_t i = 0; i < count; i++) {
        struct ofp_completion row;

        post_one(side, tagged(OFP_TSEND, side->peer, i, out, sizeof(out), i));
        row = next_completion(side, NULL);
        assert_int_equal(row.context, i);
        if (row.error) {
            assert_int_equal(row.error, error);
            assert_non_null(strstr(reason_of(&row), "hook fault: a tsend failed on purpose"));
            failed |= 1ull << i;
            continue;
        }
        assert_int_equal(request_take(request_trecv(side->endpoint, in, sizeof(in), OFP_PEER_ANY, i), -1).error, 0);
    }
    return failed;
}

static uint64_t failed_with(const char *hooks, bool offloads_matching, int error)
{
    struct side side;
    uint64_t failed;

    hooked_side_open(&side, hooks, offloads_matching);
    failed = exchange(&side, 64, error);
    side_close(&side);
    return failed;
}

static void test_without_options_it_does_nothing(void **state)
{
    (void)state;
    assert_int_equal(failed_with("fault", false, 0), 0);
    assert_int_equal(failed_with("fault;fault", true, 0), 0);
}

static void test_a_share_fails_and_the_seed_says_which(void **state)
{
    const char *third = "fault:fail=0.3,operation=tsend,seed=1";
    uint64_t failed = failed_with(third, false, EIO);

    (void)state;
    assert_in_range(__builtin_popcountll(failed), 8, 32);
    assert_true(failed == failed_with(third, false, EIO));
    assert_true(failed == failed_with(third, true, EIO));
    assert_true(failed != failed_with("fault:fail=0.3,operation=tsend,seed=2", false, EIO));
    assert_int_equal(failed_with("fault:fail=1,operation=tsend", false, EIO), UINT64_MAX);
}

static void test_two_of_a_kind_draw_by_themselves(void **state)
{
    uint64_t one = failed_with("fault:fail=0.3,operation=tsend", false, EIO);
    uint64_t both = failed_with("fault:fail=0.3,operation=tsend;fault:fail=0.3,operation=tsend", false, EIO);

    (void)state;
    assert_true((both & one) == one);
    assert_true(both != one);
}

static void test_every_nth_fails_with_the_errno(void **state)
{
    uint64_t failed = failed_with("fault:nth=4,operation=send+tsend,errno=ECONNRESET", false, ECONNRESET);

    (void)state;
    assert_true(failed == 0x8888888888888888u);
    assert_true(failed_with("fault:nth=4,operation=tsend,errno=71", true, 71) == failed);
}

static void test_of_one_peer_only(void **state)
{
    (void)state;
    assert_int_equal(failed_with("fault:fail=1,peer=0,operation=tsend", false, EIO), UINT64_MAX);
    assert_int_equal(failed_with("fault:fail=1,peer=1", false, EIO), 0);
}

static void test_receives_fail_too(void **state)
{
    struct side side;
    struct ofp_completion row;
    char in[8];

    (void)state;
    hooked_side_open(&side, "fault:fail=1,operation=recv+trecv", false);
    post_one(&side, tagged(OFP_TRECV, side.peer, 7, in, sizeof(in), 3));
    row = next_completion(&side, NULL);
    assert_int_equal(row.error, EIO);
    assert_int_equal(row.tag, 7);
    assert_string_equal(reason_of(&row), "hook fault: a trecv failed on purpose, as fail=1 asks");
    side_close(&side);
}

static void test_operations_are_late_and_in_order(void **state)
{
    struct side side;
    uint64_t begun = ofpi_clock_read();

    (void)state;
    hooked_side_open(&side, "fault:delay=3ms", false);
    assert_int_equal(exchange(&side, 4, 0), 0);
    assert_true(ofpi_clock_read() - begun >= 12 * MS);
    side_close(&side);
}

static void test_a_peer_is_lost(void **state)
{
    struct side side;
    struct ofp_endpoint_statistics statistics;
    struct ofp_completion row;
    char out[8] = "lost";

    (void)state;
    hooked_side_open(&side, "fault:lose=1,operation=tsend", false);
    post_one(&side, tagged(OFP_SEND, side.peer, 0, out, sizeof(out), 1));
    assert_int_equal(next_completion(&side, NULL).error, 0);
    post_one(&side, tagged(OFP_TSEND, side.peer, 1, out, sizeof(out), 2));
    row = next_completion(&side, NULL);
    assert_int_equal(row.error, OFP_EPEERLOST);
    assert_string_equal(reason_of(&row), "hook fault: the peer was lost on purpose, as lose=1 asks");
    assert_int_equal(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
    assert_int_equal(statistics.peers_lost, 1);
    /* It comes again. */
    post_one(&side, tagged(OFP_SEND, side.peer, 0, out, sizeof(out), 3));
    assert_int_equal(next_completion(&side, NULL).error, 0);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_options_it_does_nothing),
        cmocka_unit_test(test_a_share_fails_and_the_seed_says_which),
        cmocka_unit_test(test_two_of_a_kind_draw_by_themselves),
        cmocka_unit_test(test_every_nth_fails_with_the_errno),
        cmocka_unit_test(test_of_one_peer_only),
        cmocka_unit_test(test_receives_fail_too),
        cmocka_unit_test(test_operations_are_late_and_in_order),
        cmocka_unit_test(test_a_peer_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
