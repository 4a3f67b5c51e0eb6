/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core hears of a peer before it hears of its messages, whichever way these come: with the hook `debug`, which ends the process where
 * a message arrives of a peer that is not up.
 */
#include "link_fixture.h"
#include "ofipy/request.h"

static int next_event(void)
{
    struct ofp_event found = {0};
    char data[OFP_EVENT_DATA_MAX];

    return ofp_eq_read(fixture.eq, &found, data) == 1 ? (int)found.kind : -1;
}

static void arrive(struct ofp_peer *inner)
{
    struct ofp_message message = {
        .peer = inner, .source = inner->index, .channel = OFP_CHANNEL_TAGGED, .tag = 9, .length = 1};

    lock();
    assert_int_equal(ofp_message_arrived(inner->endpoint, &message, "x"), 0);
    unlock();
}

static void test_a_message_by_a_way_that_waits_takes_it(void **state)
{
    uint32_t peer = neighbour();
    struct ofp_peer *calls = inner_of(peer, 1);

    (void)state;
    near.post_result = far.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    lock();
    ofp_peer_connecting(calls);
    ofp_peer_up(calls);
    unlock();
    assert_int_equal(next_event(), -1);
    arrive(calls);
    assert_int_equal(next_event(), OFP_EVENT_PEER_UP);
    goes_over(peer, "far");
    ofp_domain_progress(fixture.domain);
    assert_int_equal(completion().error, 0);
    /* What becomes of our own attempt changes nothing, and it ends with the peer. */
    assert_int_equal(near.called->state, OFP_PEER_CONNECTING);
    lock();
    ofp_peer_lost(calls, OFP_EPEERLOST, true, NULL);
    unlock();
    assert_int_equal(near.called->state, OFP_PEER_LOST);
    assert_int_equal(next_event(), OFP_EVENT_PEER_LOST);
    assert_int_equal(next_event(), -1);
}

/* Up by one way, by which a message came, the peer sends by another: it has lost us without a sign. */
static void test_messages_of_an_incarnation_come_by_one_way(void **state)
{
    uint32_t peer = neighbour();
    struct ofp_peer *first = inner_of(peer, 0), *second = inner_of(peer, 1);

    (void)state;
    lock();
    ofp_peer_connecting(first);
    ofp_peer_up(first);
    unlock();
    arrive(first);
    arrive(first);
    assert_int_equal(ofp_peer_incarnation(fixture.endpoint, peer), 1);
    lock();
    ofp_peer_connecting(second);
    ofp_peer_up(second);
    unlock();
    assert_int_equal(ofp_peer_incarnation(fixture.endpoint, peer), 1);
    arrive(second);
    assert_int_equal(ofp_peer_incarnation(fixture.endpoint, peer), 2);
    assert_int_equal(first->state, OFP_PEER_LOST);
    goes_over(peer, "far");
    assert_int_equal(next_event(), OFP_EVENT_PEER_UP);
    assert_int_equal(next_event(), OFP_EVENT_PEER_LOST);
    assert_int_equal(next_event(), OFP_EVENT_PEER_UP);
    assert_int_equal(next_event(), -1);
}

/* Both called at once, by different ways: each sends by its own, and nothing is lost. */
static void test_calls_that_cross_are_one_incarnation(void **state)
{
    uint32_t peer = neighbour();

    (void)state;
    near.post_result = OFP_POST_DONE;
    send_to(peer, 1);
    lock();
    ofp_peer_up(near.called);
    ofp_peer_connecting(inner_of(peer, 1));
    ofp_peer_up(inner_of(peer, 1));
    unlock();
    arrive(inner_of(peer, 1));
    assert_int_equal(ofp_peer_incarnation(fixture.endpoint, peer), 1);
    goes_over(peer, "near");
    ofp_domain_progress(fixture.domain);
    assert_int_equal(completion().error, 0);
}

static int open_debugged(void **state)
{
    int result;

    setenv("OFIPY_HOOKS", "debug", 1);
    result = open_endpoint(state);
    unsetenv("OFIPY_HOOKS");
    return result;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_message_by_a_way_that_waits_takes_it, open_debugged, close_all),
        cmocka_unit_test_setup_teardown(test_messages_of_an_incarnation_come_by_one_way, open_debugged, close_all),
        cmocka_unit_test_setup_teardown(test_calls_that_cross_are_one_incarnation, open_debugged, close_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
