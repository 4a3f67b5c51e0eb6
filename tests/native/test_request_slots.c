/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of requests: used twice, after their end, in another domain, or made up; and what a drop leaves running. */
#include "request_fixture.h"

static struct side a, b;

static void open_pair(struct side *one, struct side *two)
{
    side_open(one, false, OFP_PROGRESS_MANUAL, 0);
    side_open(two, false, OFP_PROGRESS_MANUAL, 0);
    sides_meet(one, two);
}

static int open_sides(void **state)
{
    (void)state;
    open_pair(&a, &b);
    return 0;
}

static int close_sides(void **state)
{
    (void)state;
    side_close(&a);
    side_close(&b);
    return 0;
}

/* Every function answers -ESTALE to a handle whose use is over, or 0 where there is nothing left to do. */
static void expect_stale(ofp_request_t request)
{
    struct ofp_completion completion;

    assert_int_equal(ofp_request_finished(request), -ESTALE);
    assert_int_equal(ofp_request_wait(request, 0), -ESTALE);
    assert_int_equal(ofp_request_wait(request, -1), -ESTALE);
    assert_int_equal(ofp_request_take(request, -1, &completion), -ESTALE);
    assert_int_equal(ofp_request_take_finished(request, &completion), -ESTALE);
    assert_int_equal(ofp_request_claim(request, OFP_REGION_PROCESS, 0, 0, &completion), -ESTALE);
    assert_int_equal(ofp_request_accept(request, false), -ESTALE);
    assert_int_equal(ofp_request_unclaim(request), -ESTALE);
    assert_int_equal(ofp_request_discard(request), -ESTALE);
    assert_int_equal(ofp_request_cancel(request), -ENOENT);
    assert_int_equal(ofp_request_notify(request, false), 1);
    assert_int_equal(ofp_request_abandon(request, true), 0);
    assert_int_equal(ofp_start(request, 0, 0), -ESTALE);
    assert_int_equal(ofp_requests_wait(&request, 1, true, -1), 1);
}

static void test_a_taken_one_is_stale_for_good(void **state)
{
    char in[8];
    ofp_request_t request = request_trecv(b.endpoint, in, sizeof(in), OFP_PEER_ANY, 1), next;

    (void)state;
    assert_true(request > 0);
    assert_int_equal(request_tsend(a.endpoint, "message", 8, a.peer, 1), 0);
    assert_int_equal(request_take(request, -1).length, 8);
    expect_stale(request);
    /* Its slot serves the next operation, to which the old handle does nothing. */
    next = request_trecv(b.endpoint, in, sizeof(in), OFP_PEER_ANY, 2);
    assert_int_not_equal(next, request);
    expect_stale(request);
    assert_int_equal(ofp_request_finished(next), 0);
    assert_int_equal(ofp_request_cancel(next), 0);
    assert_int_equal(request_take(next, 0).error, ECANCELED);
}

static void test_made_up_ones(void **state)
{
    const ofp_request_t made_up[] = {0,        -1, 1, INT64_MAX, INT64_MIN, (ofp_request_t)1 << 32, 0x7fffffff00000001,
                                     123456789};

    (void)state;
    for (size_t i = 0; i < sizeof(made_up) / sizeof(*made_up); i++)
        if (ofp_request_finished(made_up[i]) == -ESTALE)
            expect_stale(made_up[i]);
    assert_int_equal(ofp_request_finished(0), -ESTALE);
    assert_int_equal(ofp_request_finished(INT64_MIN), -ESTALE);
    assert_int_equal(ofp_request_finished(0x7fffffff00000001), -ESTALE);
}

static void test_one_of_a_closed_domain_is_stale_for_the_next(void **state)
{
    struct side c, d;
    char in[8];
    ofp_request_t request, other;

    (void)state;
    open_pair(&c, &d);
    request = request_trecv(c.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);
    side_close(&c);
    side_close(&d);
    expect_stale(request);
    open_pair(&c, &d);
    other = request_trecv(c.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);
    assert_int_not_equal(other, request);
    expect_stale(request);
    side_close(&c);
    side_close(&d);
}

static void test_a_dropped_receive_takes_no_message(void **state)
{
    char first[8] = "", second[8] = "";
    ofp_request_t request = request_trecv(b.endpoint, first, sizeof(first), OFP_PEER_ANY, 1);

    (void)state;
    assert_int_equal(ofp_request_abandon(request, true), 0);
    expect_stale(request);
    request = request_trecv(b.endpoint, second, sizeof(second), OFP_PEER_ANY, 1);
    assert_int_equal(request_tsend(a.endpoint, "message", 8, a.peer, 1), 0);
    assert_int_equal(request_take(request, -1).length, 8);
    assert_string_equal(first, "");
    assert_string_equal(second, "message");
}

/* Left posted, it runs on; its handle tells when the memory is free. */
static void test_an_abandoned_one_runs_on(void **state)
{
    char in[8] = "";
    ofp_request_t request = request_trecv(b.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);

    (void)state;
    assert_int_equal(ofp_request_abandon(request, false), 1);
    assert_int_equal(ofp_request_finished(request), 0);
    assert_int_equal(ofp_request_abandon(request, false), 1);
    assert_int_equal(request_tsend(a.endpoint, "message", 8, a.peer, 1), 0);
    while (ofp_request_finished(request) == 0)
        ofp_domain_progress(b.domain);
    expect_stale(request);
    assert_string_equal(in, "message");
}

struct taker {
    ofp_request_t request;
    struct ofp_completion completion;
    int result;
};

static void *take_in_thread(void *argument)
{
    struct taker *taker = argument;

    do
        taker->result = ofp_request_take(taker->request, 1000000, &taker->completion);
    while (taker->result == 0 || taker->result == -EINTR);
    return NULL;
}

/* Of two threads that wait for one request one takes the completion, and the other learns that it was taken. */
static void test_two_takers(void **state)
{
    char in[8];

    (void)state;
    for (int round = 0; round < 200; round++) {
        ofp_request_t request = request_trecv(b.endpoint, in, sizeof(in), OFP_PEER_ANY, 1), other;
        struct taker takers[2] = {{.request = request}, {.request = request}};
        pthread_t threads[2];

        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_in_thread, &takers[i]), 0);
        assert_int_equal(request_tsend(a.endpoint, "message", 8, a.peer, 1), 0);
        /* The slot may be in use again before the second has looked. */
        other = request_trecv(b.endpoint, in, sizeof(in), OFP_PEER_ANY, 2);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(takers[0].result + takers[1].result, 1 - ESTALE);
        assert_int_equal(takers[takers[1].result == 1].completion.length, 8);
        assert_int_equal(ofp_request_abandon(other, true), 0);
    }
}

static void *take_once_in_thread(void *argument)
{
    struct taker *taker = argument;

    taker->result = ofp_request_take(taker->request, -1, &taker->completion);
    return NULL;
}

static void until_waiting(struct side *side, uint32_t count)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)side->domain;
    uint32_t waiting = 0;

    while (waiting != count) {
        sched_yield();
        ofpi_lock_acquire(&domain->lock);
        waiting = domain->waiting;
        ofpi_lock_release(&domain->lock);
    }
}

/* The second learns it although nothing uses the slot again, and not by its next look, which is a second away. */
static void test_two_sleeping_takers(void **state)
{
    int late = 0;
    char in[8];

    (void)state;
    for (int round = 0; round < 8; round++) {
        ofp_request_t request = request_trecv(b.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);
        struct taker takers[2] = {{.request = request}, {.request = request}};
        pthread_t threads[2];

        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_once_in_thread, &takers[i]), 0);
        until_waiting(&b, 2);
        assert_int_equal(request_tsend(a.endpoint, "message", 8, a.peer, 1), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        late += takers[0].result + takers[1].result != 1 - ESTALE;
    }
    /* One that stands still for a second itself is late, too. */
    assert_in_range(late, 0, 3);
}

static void test_beyond_the_transmit_queue(void **state)
{
    struct ofp_operation op = {.op = OFP_TSEND, .peer = a.peer, .tag = 1, .flags = OFP_MATCH_COMPLETE, .length = 8};
    ofp_request_t requests[8];
    char out[8] = "message", in[8];

    (void)state;
    op.offset = (uint64_t)(uintptr_t)out;
    assert_int_equal(ofp_endpoint_option_set(a.endpoint, "tx_size", 4), 0);
    for (int i = 0; i < 4; i++)
        assert_true((requests[i] = ofp_request_start(a.endpoint, &op, 0, 0)) > 0);
    assert_int_equal(ofp_request_start(a.endpoint, &op, 0, 0), -EAGAIN);
    assert_int_equal(ofp_request_start(a.endpoint, &op, OFP_START_AT_ONCE, 0), -EAGAIN);
    for (int i = 4; i < 8; i++)
        assert_true((requests[i] = ofp_request_start(a.endpoint, &op, OFP_START_BEYOND, 0)) > 0);
    assert_int_equal(ofp_request_start(a.endpoint, &op, OFP_START_BEYOND, 0), -EAGAIN);
    for (int i = 0; i < 8; i++) {
        ofp_request_t receive = request_trecv(b.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);

        while (!ofp_request_finished(requests[i])) {
            ofp_domain_progress(b.domain);
            ofp_domain_progress(a.domain);
        }
        assert_int_equal(request_take(receive, -1).length, 8);
        assert_int_equal(request_take(requests[i], -1).error, 0);
    }
}

/* What a loop of events does before it sleeps: bounded, never asleep, and nothing has to be armed. */
static void test_spinning(void **state)
{
    char in[2][8];
    struct ofp_cq *queues[] = {a.cq, b.cq};
    ofp_request_t first = request_trecv(b.endpoint, in[0], sizeof(in[0]), OFP_PEER_ANY, 1), listed = 0;
    ofp_request_t second = request_trecv(b.endpoint, in[1], sizeof(in[1]), OFP_PEER_ANY, 2);

    (void)state;
    assert_int_equal(ofp_request_notify(first, true), 0);
    assert_int_equal(ofp_request_notify(second, true), 0);
    assert_int_equal(ofp_request_spin(first, 1000), 0);
    assert_int_equal(ofp_cq_spin(queues, 2, 1000), 0);
    assert_int_equal(ofp_cq_take_finished(b.cq, &listed, 1), 0);
    assert_int_equal(request_tsend(a.endpoint, "message", 8, a.peer, 1), 0);
    while (!ofp_cq_spin(queues, 2, 1000))
        ofp_domain_progress(a.domain);
    assert_int_equal(ofp_request_spin(first, 0), 1);
    assert_int_equal(ofp_request_spin(second, 0), 0);
    assert_int_equal(ofp_cq_take_finished(b.cq, &listed, 1), 1);
    assert_int_equal(listed, first);
    assert_int_equal(ofp_cq_spin(&b.cq, 1, 0), 0);
    assert_int_equal(request_take(first, 0).length, 8);
    assert_int_equal(ofp_request_spin(first, 0), 1);
    ofp_request_abandon(second, true);
}

/* What one round of progress brings, and never a wait. */
static void test_taking_at_once(void **state)
{
    char in[8];
    struct ofp_completion completion;
    ofp_request_t request = request_trecv(b.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);
    int result;

    (void)state;
    assert_int_equal(ofp_request_take_at_once(request, &completion), 0);
    assert_int_equal(request_tsend(a.endpoint, "message", 8, a.peer, 1), 0);
    while (!(result = ofp_request_take_at_once(request, &completion)))
        ofp_domain_progress(a.domain);
    assert_int_equal(result, 1);
    assert_int_equal(completion.length, 8);
    assert_int_equal(ofp_request_take_at_once(request, &completion), -ESTALE);
}

static void test_one_that_was_not_started_tells_nothing(void **state)
{
    char in[8];
    struct ofp_operation op = {.op = OFP_TRECV, .peer = OFP_PEER_ANY, .region = OFP_REGION_PROCESS};
    ofp_request_t prepared;

    (void)state;
    op.offset = (uint64_t)(uintptr_t)in;
    op.length = sizeof(in);
    prepared = ofp_prepare(b.endpoint, &op);
    assert_true(prepared > 0);
    assert_int_equal(ofp_request_notify(prepared, false), -EINVAL);
    ofp_request_abandon(prepared, true);
}

/* Nobody took its result. The sanitizer sees whoever looks at the endpoint. */
static void test_one_that_ended_with_its_endpoint(void **state)
{
    struct ofp_endpoint_attr attr = {.tx_cq = b.cq, .rx_cq = b.cq, .av = b.av};
    struct ofp_endpoint *endpoint;
    char in[8], text[OFP_TEXT_MAX];
    ofp_request_t kept, dropped;

    (void)state;
    assert_int_equal(ofp_endpoint_open(b.domain, &attr, &endpoint, text, sizeof(text)), 0);
    kept = request_trecv(endpoint, in, sizeof(in), OFP_PEER_ANY, 1);
    dropped = request_trecv(endpoint, in, sizeof(in), OFP_PEER_ANY, 2);
    assert_int_equal(ofp_endpoint_retire(endpoint, 0), 0);
    ofp_endpoint_free(endpoint);
    assert_int_equal(ofp_request_cancel(kept), -ENOENT);
    assert_int_equal(ofp_request_abandon(dropped, true), 0);
    assert_int_equal(request_take(kept, -1).error, ECANCELED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_taken_one_is_stale_for_good, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_made_up_ones, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_one_of_a_closed_domain_is_stale_for_the_next, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_a_dropped_receive_takes_no_message, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_an_abandoned_one_runs_on, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_two_takers, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_two_sleeping_takers, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_beyond_the_transmit_queue, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_spinning, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_taking_at_once, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_one_that_was_not_started_tells_nothing, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_one_that_ended_with_its_endpoint, open_sides, close_sides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
