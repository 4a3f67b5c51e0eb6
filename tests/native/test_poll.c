/* SPDX-License-Identifier: BSD-3-Clause */
/* Polls that a program repeats until they find something, and what they leave to others. */
#include "request_fixture.h"
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static int yields;

/* In place of the library's. */
int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

static int no_room(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    (void)endpoint, (void)peer, (void)transfer;
    return -EAGAIN;
}

/* Who polls while the transport has no room lets others run, who may have to before there is any. */
static void test_polls_without_room_give_the_processor_away(void **state)
{
    struct side a, b;
    const struct ofp_endpoint_ops *before;
    struct ofp_endpoint_ops ops;
    uint64_t value = 0, sent = 7;
    struct ofp_operation send;
    ofp_request_t request;
    struct ofp_completion row;

    (void)state;
    side_open(&a, false, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&a, &b);
    request = request_trecv(b.endpoint, &value, 8, OFP_PEER_ANY, 3);
    assert_true(request > 0);
    send = tagged(OFP_TSEND, a.peer, 3, &sent, 8, 0);
    send.flags = OFP_INJECT;
    yields = 0;
    ofp_domain_progress(a.domain);
    assert_int_equal(ofp_cq_read(a.cq, &row, 1), 0);
    assert_int_equal(yields, 0);
    before = a.endpoint->ops;
    ops = *before;
    ops.post = no_room;
    a.endpoint->ops = &ops;
    assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    assert_int_equal(ofp_domain_progress(a.domain), 0);
    assert_int_equal(yields, 1);
    assert_int_equal(ofp_cq_read(a.cq, &row, 1), 0);
    assert_int_equal(yields, 2);
    a.endpoint->ops = before;
    assert_true(ofp_domain_progress(a.domain) > 0);
    assert_int_equal(yields, 2);
    assert_int_equal(ofp_request_wait(request, 5000000000), 1);
    assert_int_equal(value, 7);
    ofp_request_abandon(request, false);
    side_close(&a);
    side_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_polls_without_room_give_the_processor_away)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
