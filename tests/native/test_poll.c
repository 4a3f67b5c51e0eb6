/* SPDX-License-Identifier: BSD-3-Clause */
/* Polls that a program repeats until they find something, and what they leave to others. */
#include "request_fixture.h"
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int yields, naps;

/* In place of the library's. */
int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

int nanosleep(const struct timespec *duration, struct timespec *left)
{
    naps++;
    return (int)syscall(SYS_nanosleep, duration, left);
}

static void sleep_a_millisecond(void)
{
    struct timespec duration = {.tv_nsec = 1000000};

    syscall(SYS_nanosleep, &duration, NULL);
}

static const struct ofp_endpoint_ops *real;
static int room; /* messages */

static int post_as_far_as_room(struct ofp_endpoint *endpoint, struct ofp_peer *peer,
                               const struct ofp_transfer *transfer)
{
    return room-- > 0 ? real->post(endpoint, peer, transfer) : -EAGAIN;
}

/* Who polls while the transport has no room lets others run, who may have to before there is any. */
static void test_polls_without_room_give_the_processor_away(void **state)
{
    struct side a, b;
    struct ofp_endpoint_ops ops;
    uint64_t values[2] = {0}, sent = 7;
    struct ofp_operation send;
    ofp_request_t requests[2];
    struct ofp_completion row;

    (void)state;
    side_open(&a, false, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&a, &b);
    for (int i = 0; i < 2; i++) {
        requests[i] = request_trecv(b.endpoint, &values[i], 8, OFP_PEER_ANY, 3);
        assert_true(requests[i] > 0);
    }
    send = tagged(OFP_TSEND, a.peer, 3, &sent, 8, 0);
    send.flags = OFP_INJECT;
    yields = naps = 0;
    ofp_domain_progress(a.domain);
    assert_int_equal(ofp_cq_read(a.cq, &row, 1), 0);
    assert_int_equal(yields + naps, 0);
    real = a.endpoint->ops;
    ops = *real;
    ops.post = post_as_far_as_room;
    a.endpoint->ops = &ops;
    room = 0;
    for (int i = 0; i < 2; i++)
        assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    assert_int_equal(ofp_domain_progress(a.domain), 0);
    assert_int_equal(yields, 1);
    assert_int_equal(ofp_cq_read(a.cq, &row, 1), 0);
    assert_int_equal(yields + naps, 2);
    /* Nothing moves: who yields only would keep the processor from whoever has to run, if it has had its share. */
    sleep_a_millisecond();
    yields = naps = 0;
    assert_int_equal(ofp_domain_progress(a.domain), 0);
    assert_int_equal(naps, 1);
    assert_int_equal(yields, 0);
    /* It does move. */
    sleep_a_millisecond();
    room = 1;
    assert_true(ofp_domain_progress(a.domain) > 0);
    assert_int_equal(naps, 1);
    assert_int_equal(yields, 1);
    a.endpoint->ops = real;
    assert_true(ofp_domain_progress(a.domain) > 0);
    assert_int_equal(yields + naps, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ofp_request_wait(requests[i], 5000000000), 1);
        assert_int_equal(values[i], 7);
        ofp_request_abandon(requests[i], false);
    }
    side_close(&a);
    side_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_polls_without_room_give_the_processor_away)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
