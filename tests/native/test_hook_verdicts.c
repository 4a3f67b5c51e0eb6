/* SPDX-License-Identifier: BSD-3-Clause */
/* What the core does with the answers of hooks: operations fail, wait, or lose their peer. */
#include "hook_witness.h"
#include "object/peer.h"

static void fail_all(bool offloads_matching)
{
    struct side side;
    struct ofp_operation op;
    struct ofp_completion row;
    char memory[256] = "x";

    hooked_side_open(&side, "witness;witness", offloads_matching);
    asked.error = ENOSPC;
    op = tagged(OFP_TRECV, OFP_PEER_ANY, 1, memory, sizeof(memory), 5);
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            op.flags = OFP_MULTI_RECV;
        else if (i == 2)
            op = tagged(OFP_TSEND, side.peer, 1, memory, 8, 5);
        post_one(&side, op);
        row = next_completion(&side, NULL);
        assert_int_equal(row.error, ENOSPC);
        assert_int_equal(row.context, 5);
        assert_string_equal(reason_of(&row), "hook witness: it was asked to");
        if (i == 1)
            assert_true(row.flags & OFP_COMPLETED_MULTI_RECV);
    }
    /* The second one, further away, was not asked. */
    assert_int_equal(seen.posted, 3);
    assert_int_equal(seen.completed, 3);
    side_close(&side);
}

static void test_a_failure_is_a_completion_with_a_reason(void **state)
{
    (void)state;
    fail_all(false);
    setup(state);
    fail_all(true);
}

static void test_what_is_held_back_keeps_its_order(void **state)
{
    struct side side;
    char in[2], out[] = {'1', '2', '3'};
    uint64_t begun = ofpi_clock_read();

    (void)state;
    hooked_side_open(&side, "witness", false);
    for (int i = 0; i < 3; i++) {
        asked.delay = i == 1 ? 0 : 20 * MS;
        post_one(&side, tagged(OFP_TSEND, side.peer, 1, &out[i], 1, 2));
    }
    asked.delay = 0;
    for (int i = 0; i < 3; i++) {
        ofp_request_t receive = request_trecv(side.endpoint, in, 1, OFP_PEER_ANY, 1);

        assert_int_equal(request_take(receive, -1).error, 0);
        assert_int_equal(in[0], out[i]);
    }
    assert_true(ofpi_clock_read() - begun >= 20 * MS);
    side_close(&side);
    assert_int_equal(seen.posted, seen.completed);
}

static void test_what_waits_behind_a_cancelled_one_goes_on(void **state)
{
    struct side side;
    char in[1], out[2] = {'1', '2'};
    uint64_t begun = ofpi_clock_read();
    ofp_request_t receive;

    (void)state;
    hooked_side_open(&side, "witness", false);
    asked.delay = 60000 * MS;
    post_one(&side, tagged(OFP_TSEND, side.peer, 1, &out[0], 1, 71));
    asked.delay = 0;
    post_one(&side, tagged(OFP_TSEND, side.peer, 1, &out[1], 1, 72));
    assert_int_equal(ofp_cancel(side.endpoint, 71), 0);
    receive = request_trecv(side.endpoint, in, 1, OFP_PEER_ANY, 1);
    assert_int_equal(request_take(receive, -1).error, 0);
    assert_int_equal(in[0], '2');
    assert_true(ofpi_clock_read() - begun < 30000 * MS);
    side_close(&side);
}

static void test_a_held_back_inject_is_a_copy(void **state)
{
    struct side side;
    struct ofp_operation op;
    char in[8], out[8] = "inject";
    ofp_request_t receive;

    (void)state;
    hooked_side_open(&side, "witness", false);
    asked.delay = 5 * MS;
    op = tagged(OFP_TSEND, side.peer, 1, out, sizeof(out), 2);
    op.flags = OFP_INJECT;
    post_one(&side, op);
    memset(out, 'z', sizeof(out));
    receive = request_trecv(side.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);
    assert_int_equal(request_take(receive, -1).error, 0);
    assert_string_equal(in, "inject");
    assert_int_equal(seen.released, 1);
    side_close(&side);
}

static void test_a_peer_is_lost_and_comes_again(void **state)
{
    struct side side;
    struct ofp_completion row;
    char in[8], out[8] = "again";
    struct ofpi_peer *peer;
    ofp_request_t receive;
    uint32_t changes;

    (void)state;
    hooked_side_open(&side, "witness", false);
    request_tsend(side.endpoint, out, sizeof(out), side.peer, 1);
    peer = ofpi_peer_find_at((struct ofpi_endpoint *)side.endpoint, side.peer);
    assert_int_equal(peer->base.state, OFP_PEER_UP);
    changes = seen.peers_changed;
    asked.lose = true;
    asked.delay = 1000 * MS;
    post_one(&side, tagged(OFP_TSEND, side.peer, 1, out, sizeof(out), 2));
    asked.lose = false;
    asked.delay = 0;
    assert_int_equal(peer->base.state, OFP_PEER_LOST);
    assert_int_equal(seen.peers_changed, changes + 1);
    row = next_completion(&side, NULL);
    assert_int_equal(row.error, OFP_EPEERLOST);
    assert_string_equal(reason_of(&row), "hook witness: lost by the witness");
    post_one(&side, tagged(OFP_TSEND, side.peer, 2, out, sizeof(out), 2));
    receive = request_trecv(side.endpoint, in, sizeof(in), OFP_PEER_ANY, 2);
    assert_int_equal(request_take(receive, -1).error, 0);
    /* The hook's bytes were zeroed with the transport's: they count what was posted since. */
    assert_true(((struct mark *)((char *)peer->base.private + ofpi_peer_compute_private_size(side.endpoint)))->number <=
                1);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_failure_is_a_completion_with_a_reason, setup),
        cmocka_unit_test_setup(test_what_is_held_back_keeps_its_order, setup),
        cmocka_unit_test_setup(test_what_waits_behind_a_cancelled_one_goes_on, setup),
        cmocka_unit_test_setup(test_a_held_back_inject_is_a_copy, setup),
        cmocka_unit_test_setup(test_a_peer_is_lost_and_comes_again, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
