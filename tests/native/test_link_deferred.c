/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that defers our request: the core repeats it, link tries no other lane for that, and the peer may call meanwhile. */
#include "link_fixture.h"

static void defer(struct ofp_peer *inner, int error)
{
    lock();
    ofp_peer_deferred(inner, error, "not now; ask later");
    unlock();
}

static void up(struct ofp_peer *inner)
{
    lock();
    ofp_peer_up(inner);
    unlock();
}

static void lost(struct ofp_peer *inner)
{
    lock();
    ofp_peer_lost(inner, ECONNRESET, false, "it broke");
    unlock();
}

/* The peer calls by the second lane. */
static struct ofp_peer *call(uint32_t peer)
{
    struct ofp_peer *calls = inner_of(peer, 1);

    lock();
    ofp_peer_connecting(calls);
    unlock();
    return calls;
}

static void progress_until_connect(uint32_t count)
{
    while (near.connects < count)
        ofp_domain_progress(fixture.domain);
    assert_int_equal(near.connects, count);
}

static void expect_success(uint64_t context)
{
    struct ofp_completion row;

    ofp_domain_progress(fixture.domain);
    row = completion();
    assert_int_equal(row.context, context);
    assert_int_equal(row.error, 0);
}

static void test_a_deferred_request_is_repeated_by_its_lane(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    near.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    for (uint32_t attempt = 2; attempt < 5; attempt++) {
        defer(near.called, ECONNREFUSED);
        assert_int_equal(near.called->state, OFP_PEER_LOST);
        progress_until_connect(attempt);
    }
    up(near.called);
    expect_success(1);
    assert_int_equal(far.connects, 0);
    goes_over(peer, "near");
}

/* Such a peer is not expected any more, so an absent one would not be tried again. */
static void test_a_peer_that_was_up_before_is_asked_again(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    near.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    up(near.called);
    expect_success(1);
    lost(near.called);
    send_to(peer, 2);
    defer(near.called, EMFILE);
    progress_until_connect(3);
    up(near.called);
    expect_success(2);
}

static void test_the_time_of_all_attempts_is_bounded(void **state)
{
    char text[OFP_TEXT_MAX];
    struct ofp_completion row;
    uint32_t peer = neighbour();

    (void)state;
    ((struct ofpi_domain *)fixture.domain)->connect_ns = 20000000;
    send_to(peer, 1);
    do {
        if (near.called->state == OFP_PEER_CONNECTING)
            defer(near.called, EMFILE);
        ofp_domain_progress(fixture.domain);
    } while (ofp_cq_read(fixture.cq, &row, 1) == 0);
    assert_int_equal(row.error, EMFILE);
    assert_true(ofp_reason(row.provider_error, text, sizeof(text)) >= 0);
    assert_string_equal(text, "near: not now, tried for 0 s (OFIPY_CONNECT_TIMEOUT); ask later");
    assert_true(near.connects > 2);
    assert_int_equal(far.connects, 0);
}

static void test_a_call_is_used_at_once(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    far.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    up(call(peer));
    /* While our attempt runs, the call waits for its outcome. */
    ofp_domain_progress(fixture.domain);
    nothing_completed();
    defer(near.called, ECONNREFUSED);
    expect_success(1);
    goes_over(peer, "far");
    assert_int_equal(near.connects, 1);
}

static void test_a_call_that_is_not_up_yet_is_waited_for(void **state)
{
    uint32_t peer = neighbour();
    struct ofp_peer *calls;

    (void)state;
    far.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    calls = call(peer);
    defer(near.called, ECONNREFUSED);
    assert_int_equal(calls->state, OFP_PEER_CONNECTING);
    up(calls);
    expect_success(1);
    goes_over(peer, "far");
}

/* If that call comes to nothing, the attempt is repeated: the peer had not refused. */
static void test_a_call_that_fails_leads_to_the_next_attempt(void **state)
{
    uint32_t peer = neighbour();
    struct ofp_peer *calls;

    (void)state;
    near.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    calls = call(peer);
    defer(near.called, ECONNREFUSED);
    lost(calls);
    nothing_completed();
    progress_until_connect(2);
    up(near.called);
    expect_success(1);
}

static void test_a_call_in_a_pause_ends_it(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    far.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    defer(near.called, ECONNREFUSED);
    up(call(peer));
    expect_success(1);
    assert_int_equal(near.connects, 1);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, open_endpoint, close_all)
    const struct CMUnitTest tests[] = {
        WITH(test_a_deferred_request_is_repeated_by_its_lane),
        WITH(test_a_peer_that_was_up_before_is_asked_again),
        WITH(test_the_time_of_all_attempts_is_bounded),
        WITH(test_a_call_is_used_at_once),
        WITH(test_a_call_that_is_not_up_yet_is_waited_for),
        WITH(test_a_call_that_fails_leads_to_the_next_attempt),
        WITH(test_a_call_in_a_pause_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
