/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues on whose descriptor somebody sleeps: what arms them, and what leaves them armed. */
#include "request_fixture.h"

#include <poll.h>
#include <pthread.h>

#include "completion/completion_queue.h"

static struct side a, b;

static int open_both(void **state)
{
    (void)state;
    side_open(&a, false, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&a, &b);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    side_close(&a);
    side_close(&b);
    return 0;
}

static bool is_readable(int timeout)
{
    struct pollfd entry = {.fd = ofp_cq_fileno(b.cq), .events = POLLIN};

    return poll(&entry, 1, timeout) == 1;
}

static void send_one(void)
{
    uint64_t sent = 6;

    assert_int_equal(request_tsend(a.endpoint, &sent, 8, a.peer, 3), 0);
    ofp_domain_progress(a.domain);
}

static ofp_request_t awaited(uint64_t *value)
{
    ofp_request_t request = request_trecv(b.endpoint, value, 8, OFP_PEER_ANY, 3);

    assert_true(request > 0);
    assert_int_equal(ofp_request_notify(request, false), 0);
    return request;
}

static uint64_t rounds_of_progress(void)
{
    struct ofp_endpoint_statistics statistics;

    assert_int_equal(ofp_endpoint_statistics(b.endpoint, &statistics), 0);
    return statistics.progress_calls;
}

static void test_arming_at_once_makes_no_progress(void **state)
{
    uint64_t rounds;

    (void)state;
    assert_int_equal(ofp_cq_arm_at_once(b.cq), 0);
    assert_true(ofp_cq_fileno(b.cq) >= 0);
    rounds = rounds_of_progress();
    assert_int_equal(ofp_cq_arm_at_once(b.cq), 1);
    /* Armed still. */
    assert_int_equal(ofp_cq_arm_at_once(b.cq), 1);
    assert_int_equal(rounds_of_progress(), rounds);
    assert_false(is_readable(0));
}

static const struct ofp_endpoint_ops *ops_of_b;

/* As tcp's, which sends what it has gathered: operations finish while the endpoint is armed. */
static bool arm_with_progress(struct ofp_endpoint *endpoint)
{
    ops_of_b->progress(endpoint);
    return ops_of_b->arm(endpoint);
}

static void test_news_that_arming_brings(void **state)
{
    struct ofp_endpoint_ops ops;
    uint64_t value = 0;
    ofp_request_t request, listed = 0;

    (void)state;
    assert_true(ofp_cq_fileno(b.cq) >= 0);
    ops_of_b = b.endpoint->ops;
    ops = *ops_of_b;
    ops.arm = arm_with_progress;
    b.endpoint->ops = &ops;
    request = awaited(&value);
    send_one();
    assert_int_equal(ofp_cq_arm_at_once(b.cq), 0);
    b.endpoint->ops = ops_of_b;
    assert_int_equal(ofp_cq_take_finished(b.cq, &listed, 1), 1);
    assert_int_equal(listed, request);
    ofp_request_abandon(request, false);
}

static void test_armed_at_once_it_wakes(void **state)
{
    uint64_t value = 0;
    ofp_request_t request, listed = 0;

    (void)state;
    assert_true(ofp_cq_fileno(b.cq) >= 0);
    assert_int_equal(ofp_cq_arm_at_once(b.cq), 1);
    request = awaited(&value);
    send_one();
    assert_true(is_readable(5000));
    /* What nobody has taken keeps it from sleeping. */
    ofp_domain_progress(b.domain);
    assert_int_equal(ofp_cq_arm_at_once(b.cq), 0);
    assert_int_equal(ofp_cq_take_finished(b.cq, &listed, 1), 1);
    assert_int_equal(listed, request);
    assert_int_equal(ofp_cq_arm_at_once(b.cq), 1);
    assert_false(is_readable(0));
    ofp_request_abandon(request, false);
}

/* Who reads may be another one than who sleeps. */
static void test_a_reader_leaves_the_sleeper_its_wake_up(void **state)
{
    uint64_t value = 0;
    struct ofp_completion row;
    ofp_request_t request, listed = 0;
    bool expired;

    (void)state;
    request = awaited(&value);
    assert_true(ofp_cq_fileno(b.cq) >= 0);
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    assert_int_equal(ofp_cq_read(b.cq, &row, 1), 0);
    assert_int_equal(ofp_cq_wait(b.cq, &row, 1, 1, 0, &expired), 0);
    send_one();
    while (value == 0)
        assert_int_equal(ofp_cq_read(b.cq, &row, 1), 0);
    assert_true(is_readable(0));
    assert_int_equal(ofp_cq_finished(b.cq, &listed, 1), 1);
    assert_int_equal(listed, request);
    ofp_request_abandon(request, false);
}

/* ------------------------------------------------------------------------------------------------- several threads */

static void in_another_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *look(void *argument)
{
    ofp_request_t listed;

    (void)argument;
    (void)!ofp_cq_finished(b.cq, &listed, 1);
    (void)!ofp_cq_spin((struct ofp_cq *[]){b.cq}, 1, 0);
    return NULL;
}

static void *arm_at_once(void *argument)
{
    *(int *)argument = ofp_cq_arm_at_once(b.cq);
    return NULL;
}

static void test_who_armed_it_alone_is_awake_when_it_looks(void **state)
{
    uint64_t value = 0;
    ofp_request_t request = awaited(&value);

    (void)state;
    assert_true(ofp_cq_fileno(b.cq) >= 0);
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    look(NULL);
    send_one();
    while (value == 0)
        look(NULL);
    assert_false(b.cq->sleeper.event_set);
    ofp_request_abandon(request, false);
}

static void test_who_armed_it_sleeps_while_another_looks(void **state)
{
    uint64_t value = 0;
    ofp_request_t request = awaited(&value);

    (void)state;
    assert_true(ofp_cq_fileno(b.cq) >= 0);
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    in_another_thread(look, NULL);
    send_one();
    while (value == 0)
        in_another_thread(look, NULL);
    assert_true(is_readable(0));
    ofp_request_abandon(request, false);
}

/* The one that wakes first leaves what woke it to the other, unless all that came has been taken. */
static void test_two_who_armed_it_are_both_woken(void **state)
{
    uint64_t value = 0;
    ofp_request_t request = awaited(&value), listed = 0;
    struct ofp_completion row;
    int armed = 0;

    (void)state;
    assert_true(ofp_cq_fileno(b.cq) >= 0);
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    in_another_thread(arm_at_once, &armed);
    assert_int_equal(armed, 1);
    send_one();
    while (value == 0)
        ofp_domain_progress(b.domain);
    assert_true(is_readable(0));
    in_another_thread(arm_at_once, &armed);
    assert_int_equal(armed, 0);
    assert_int_equal(ofp_cq_read(b.cq, &row, 1), 0);
    assert_true(is_readable(0));
    assert_int_equal(ofp_cq_finished(b.cq, &listed, 1), 1);
    assert_int_equal(listed, request);
    in_another_thread(arm_at_once, &armed);
    assert_int_equal(armed, 1);
    assert_false(is_readable(0));
    ofp_request_abandon(request, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arming_at_once_makes_no_progress, open_both, close_both),
        cmocka_unit_test_setup_teardown(test_news_that_arming_brings, open_both, close_both),
        cmocka_unit_test_setup_teardown(test_armed_at_once_it_wakes, open_both, close_both),
        cmocka_unit_test_setup_teardown(test_a_reader_leaves_the_sleeper_its_wake_up, open_both, close_both),
        cmocka_unit_test_setup_teardown(test_who_armed_it_alone_is_awake_when_it_looks, open_both, close_both),
        cmocka_unit_test_setup_teardown(test_who_armed_it_sleeps_while_another_looks, open_both, close_both),
        cmocka_unit_test_setup_teardown(test_two_who_armed_it_are_both_woken, open_both, close_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
