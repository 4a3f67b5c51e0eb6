/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that only connects, and whose connection ended without a goodbye: within a time it comes back, or it counts as
 * gone. The tests choose the time at which the timers run.
 */
#include "rdm_fixture.h"

#include "object/peer.h"
#include "progress/progress.h"

#define LIMIT 3600000000000ull

static struct side a, b;

static struct ofpi_domain *domain_of(struct side *side) { return (struct ofpi_domain *)side->domain; }

static struct ofpi_peer *peer_of(struct side *side)
{
    return ofpi_peer_find_at((struct ofpi_endpoint *)side->endpoint, side->peer);
}

static void post(struct side *side, struct ofp_operation op) { assert_int_equal(ofp_post(side->endpoint, &op, 1), 1); }

static void post_receive(uint64_t context) { post(&a, tagged(OFP_TRECV, a.peer, 1, NULL, 0, context)); }

static void send_from_b(void)
{
    post(&b, tagged(OFP_TSEND, b.peer, 1, NULL, 0, 0));
    assert_int_equal(next_completion(&b, &a).error, 0);
}

static void expect_end(uint64_t context, int error)
{
    struct ofp_completion row = next_completion(&a, &b);

    assert_int_equal(row.context, context);
    assert_int_equal(row.error, error);
}

static void expect_nothing(void)
{
    struct ofp_completion row;

    assert_int_equal(ofp_cq_read(a.cq, &row, 1), 0);
}

/* Run the timers of `a` as if `time` had passed since `began`. */
static void pass_time(uint64_t began, uint64_t time)
{
    assert_int_equal(ofpi_domain_enter(domain_of(&a)), 0);
    ofpi_timers_run(&domain_of(&a)->timers, began + time);
    ofpi_domain_leave(domain_of(&a));
}

/* `b` closes the connection without a goodbye, and lives on. Returns the time of the loss, or earlier. */
static uint64_t lose_connection(void)
{
    uint64_t began = ofpi_clock_read();

    assert_int_equal(ofp_av_remove(b.av, b.peer), 0);
    while (peer_of(&a)->base.state != OFP_PEER_LOST)
        ofp_domain_progress(a.domain);
    assert_false(peer_of(&a)->gone);
    return began;
}

/* `b` enters the address of `a` again, and sends. */
static void call_again(void)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    assert_int_equal(ofp_endpoint_address(a.endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(b.av, address, length, &b.peer), 0);
    send_from_b();
}

static int meet(void **state)
{
    (void)state;
    rdm_side_open(&a, RDMFAKE_GETS, 0);
    rdm_side_open(&b, RDMFAKE_GETS, 0);
    domain_of(&a)->base.absence_limit = LIMIT;
    b.endpoint->connects_only = true;
    sides_meet(&a, &b);
    post_receive(1);
    send_from_b();
    expect_end(1, 0);
    return 0;
}

static int part(void **state)
{
    (void)state;
    forget_warnings();
    side_close(&a);
    side_close(&b);
    return 0;
}

static void test_it_counts_as_gone_after_the_limit(void **state)
{
    uint64_t lost;

    (void)state;
    post_receive(2);
    lost = lose_connection();
    pass_time(lost, LIMIT - 1);
    expect_nothing();
    pass_time(ofpi_clock_read(), LIMIT);
    expect_end(2, OFP_EPEERLOST);
    post_receive(3);
    expect_end(3, OFP_EPEERLOST);
}

static void test_it_comes_back_before(void **state)
{
    (void)state;
    post_receive(2);
    lose_connection();
    call_again();
    expect_end(2, 0);
    post_receive(3);
    pass_time(ofpi_clock_read(), 2 * LIMIT);
    expect_nothing();
}

static void test_calls_in_vain_do_not_lengthen_the_time(void **state)
{
    uint64_t deadline;

    (void)state;
    lose_connection();
    deadline = peer_of(&a)->again.deadline;
    for (uint64_t i = 10; i < 13; i++) {
        post(&a, tagged(OFP_TSEND, a.peer, 1, NULL, 0, i));
        expect_end(i, EHOSTUNREACH);
        assert_int_equal(peer_of(&a)->again.deadline, deadline);
        assert_true(peer_of(&a)->again.position);
    }
    post_receive(2);
    pass_time(deadline, 0);
    expect_end(2, OFP_EPEERLOST);
}

static void test_one_that_was_inserted_again_is_expected(void **state)
{
    (void)state;
    post_receive(2);
    lose_connection();
    sides_meet(&a, &b);
    pass_time(ofpi_clock_read(), 2 * LIMIT);
    expect_nothing();
    send_from_b();
    expect_end(2, 0);
}

/* A peer that listens is asked at once: its port is there, so it is not gone, and no time runs. */
static void test_one_that_listens_is_waited_for(void **state)
{
    (void)state;
    peer_of(&a)->base.connects_only = false;
    post_receive(2);
    lose_connection();
    pass_time(ofpi_clock_read(), 2 * LIMIT);
    expect_nothing();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, meet, part)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_it_counts_as_gone_after_the_limit),      TEST(test_it_comes_back_before),
        TEST(test_calls_in_vain_do_not_lengthen_the_time), TEST(test_one_that_was_inserted_again_is_expected),
        TEST(test_one_that_listens_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
