/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of multi-receive buffers: many completions, taken one at a time; and injects and fences beside them. */
#include "request_fixture.h"

#define TAG 7
#define SECOND 1000000000ll

static struct side side;
static char room[200];

static int setup(void **state)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    assert_int_equal(ofp_endpoint_address(side.endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(side.av, address, length, &side.peer), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    side_close(&side);
    return 0;
}

static ofp_request_t start_many(void)
{
    struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, TAG, room, sizeof(room), 0);
    ofp_request_t request;

    op.flags = OFP_MULTI_RECV;
    request = request_start(side.endpoint, &op);
    assert_true(request > 0);
    return request;
}

static void send(const void *data, uint64_t length)
{
    struct ofp_operation op = tagged(OFP_TSEND, side.peer, TAG, data, length, 0);

    op.flags = OFP_INJECT;
    assert_int_equal(ofp_post(side.endpoint, &op, 1), 1);
    ofp_domain_progress(side.domain);
}

static void expect(ofp_request_t request, uint64_t offset, uint64_t length, bool last)
{
    struct ofp_completion taken = request_take(request, SECOND);

    assert_int_equal(taken.error, 0);
    assert_int_equal(taken.buffer_offset, offset);
    assert_int_equal(taken.length, length);
    assert_int_equal(!!(taken.flags & OFP_COMPLETED_MULTI_RECV), last);
}

static void test_completions_wait_their_turn(void **state)
{
    ofp_request_t request = start_many();

    (void)state;
    send("one", 3);
    send("three", 5);
    assert_int_equal(ofp_request_finished(request), 1);
    expect(request, 0, 3, false);
    assert_int_equal(ofp_request_finished(request), 1);
    expect(request, 3, 5, false);
    assert_int_equal(ofp_request_finished(request), 0);
    assert_int_equal(request_take(request, 0).error, -EAGAIN);
    assert_int_equal(ofp_request_notify(request, false), 0);
    send(room, 150);
    expect(request, 8, 150, true);
    assert_memory_equal(room, "onethree", 8);
}

static void test_cancelling_with_completions_to_take(void **state)
{
    ofp_request_t request = start_many();
    struct ofp_completion taken;

    (void)state;
    send("one", 3);
    assert_int_equal(ofp_request_cancel(request), 0);
    assert_int_equal(ofp_request_cancel(request), -ENOENT);
    expect(request, 0, 3, false);
    taken = request_take(request, 0);
    assert_int_equal(taken.error, ECANCELED);
    assert_int_equal(taken.flags, OFP_COMPLETED_MULTI_RECV);
}

/* Nobody takes the rest: the request runs until the buffer is released, and then is given back once. */
/* Abandoned: what has arrived is dropped, and the buffer takes nothing more. */
static void test_abandoned_before_the_end(void **state)
{
    ofp_request_t request = start_many(), other;

    (void)state;
    send("one", 3);
    send("two", 3);
    assert_int_equal(ofp_request_abandon(request, false), 0);
    assert_int_equal(ofp_request_finished(request), -ESTALE);
    assert_int_equal(ofp_request_abandon(request, false), 0);
    send("three", 5);
    other = start_many();
    assert_int_not_equal(other, request);
    expect(other, 0, 5, false);
    send(room, 190);
    expect(other, 5, 190, true);
}

static void test_release_after_the_end(void **state)
{
    ofp_request_t request = start_many();

    (void)state;
    send("one", 3);
    send(room, 190);
    ofp_request_abandon(request, false);
    request = start_many();
    assert_int_equal(ofp_request_finished(request), 0);
    /* Closing the endpoint ends it, and the domain frees what was not taken. */
}

static void test_it_is_not_prepared(void **state)
{
    struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, TAG, room, sizeof(room), 0);

    (void)state;
    op.flags = OFP_MULTI_RECV;
    assert_int_equal(ofp_prepare(side.endpoint, &op), -EINVAL);
}

static void test_an_inject_that_is_copied_keeps_its_silence(void **state)
{
    static char large[100000];
    ofp_request_t request;
    struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, TAG, NULL, sizeof(large), 0);
    char *memory = calloc(1, sizeof(large));
    struct ofp_completion row;

    (void)state;
    assert_non_null(memory);
    op.offset = (uint64_t)(uintptr_t)memory;
    memset(large, 'l', sizeof(large));
    send(large, sizeof(large));
    memset(large, 0, sizeof(large));
    request = request_start(side.endpoint, &op);
    assert_true(request > 0);
    assert_int_equal(request_take(request, SECOND).length, sizeof(large));
    assert_int_equal(memory[sizeof(large) - 1], 'l');
    for (int i = 0; i < 10; i++)
        assert_int_equal(ofp_cq_read(side.cq, &row, 1), 0);
    free(memory);
}

static void test_a_fence_opens_when_the_last_one_before_it_ends(void **state)
{
    struct ofp_operation ops[3];
    struct ofp_endpoint_statistics statistics;

    (void)state;
    for (int i = 0; i < 3; i++)
        ops[i] = tagged(OFP_TSEND, side.peer, (uint64_t)i, "x", 1, (uint64_t)i);
    ops[0].flags = ops[1].flags = OFP_MATCH_COMPLETE;
    ops[2].flags = OFP_FENCE;
    assert_int_equal(ofp_post(side.endpoint, ops, 3), 3);
    for (int i = 1; i >= 0; i--) {
        struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, (uint64_t)i, room, 1, 0);
        ofp_request_t request = request_start(side.endpoint, &op);

        assert_int_equal(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
        assert_int_equal(statistics.backlog, 1);
        assert_int_equal(request_take(request, SECOND).error, 0);
        assert_int_equal(next_completion(&side, NULL).context, i);
    }
    assert_int_equal(next_completion(&side, NULL).context, 2);
    assert_int_equal(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
    assert_int_equal(statistics.backlog, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_completions_wait_their_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancelling_with_completions_to_take, setup, teardown),
        cmocka_unit_test_setup_teardown(test_abandoned_before_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_release_after_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_it_is_not_prepared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_inject_that_is_copied_keeps_its_silence, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_fence_opens_when_the_last_one_before_it_ends, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
