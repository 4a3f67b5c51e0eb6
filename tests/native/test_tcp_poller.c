/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of many sockets is read, and when. */
#include "test_tcp_fixture.h"

#define FLOOD (UINT64_C(1) << 40)
/* Calls of progress until a message of somebody else must be here. */
#define TURNS 2000

/* As much as the socket takes: there is always more to read than one call of progress reads. */
static void fill(int fd)
{
    static const char zeros[1 << 16];

    while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
}

static void test_a_busy_connection_leaves_the_others_their_turn(void **state)
{
    struct side side;
    struct tcp_control control;
    struct tcp_rdm rdm;
    struct ofp_completion row = {0};
    uint8_t flooded = 0, in = 0, out = 42;
    int busy, quiet;

    (void)state;
    tcp_side_open(&side);
    busy = raw_meet(&side);
    quiet = raw_meet_as(&side, RAW_PORT + 1, RAW_PID, 0, &control, &rdm);
    post(&side, tagged(OFP_TRECV, raw_peer(&side), 1, &flooded, 1, 1));
    post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 2, &in, 1, 2));
    raw_send(busy, (struct tcp_header){.op = TCP_TAG, .tag = 1, .payload = FLOOD}, NULL, 0);
    for (int turn = 0; turn < TURNS; turn++) {
        fill(busy);
        assert_true(ofp_domain_progress(side.domain) > 0);
    }
    raw_send(quiet, (struct tcp_header){.op = TCP_TAG, .tag = 2, .payload = 1}, &out, 1);
    for (int turn = 0; turn < TURNS && ofp_cq_read(side.cq, &row, 1) != 1; turn++) {
        fill(busy);
        assert_true(ofp_domain_progress(side.domain) > 0);
    }
    assert_int_equal(row.context, 2);
    assert_int_equal(in, 42);
    close(busy);
    close(quiet);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_busy_connection_leaves_the_others_their_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
