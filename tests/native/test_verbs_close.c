/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a reliable datagram endpoint of verbs, on a device that is played here: its completion queue has what the test puts
 * there, or another failed receive for each that is taken, as with peers that go on sending.
 */
#include "verbs_fixture.h"

/* Receives that the device has, oldest first: a ring. */
static uint64_t posted[QUEUE];
static uint64_t head, tail;
static uint64_t flushed; /* of them, those that have failed: completions that nobody has taken */
static uint64_t polled;  /* completions that were taken */
static bool floods;      /* every receive fails as soon as the device has it */

/* ------------------------------------------------------------------------------------------------------- the device */

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *completions)
{
    int count = 0;

    (void)cq;
    if (floods)
        flushed = head - tail;
    while (count < most && flushed) {
        completions[count++] = (struct ibv_wc){.wr_id = posted[tail++ % QUEUE], .status = IBV_WC_WR_FLUSH_ERR};
        flushed--;
    }
    polled += (uint64_t)count;
    assert_true(polled <= 4 * cq_size);
    return count;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad)
{
    (void)srq;
    (void)bad;
    assert_true(head - tail < QUEUE);
    posted[head++ % QUEUE] = requests->wr_id;
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- the tests */

static void rdm_open(struct side *side)
{
    struct ofp_info info = played_info(OFP_EP_RDM, OFP_CAP_MSG | OFP_CAP_TAGGED);

    head = tail = flushed = polled = 0;
    floods = false;
    context.ops = (struct ibv_context_ops){.poll_cq = poll_cq, .post_srq_recv = post_srq_recv};
    fake_provider();
    side_open_info(side, &info, OFP_PROGRESS_MANUAL, 0);
    polled = 0;
}

static void rest_close(struct side *side)
{
    assert_int_equal(ofp_av_close(side->av), 0);
    assert_int_equal(ofp_cq_close(side->cq), 0);
    assert_int_equal(ofp_domain_close(side->domain), 0);
}

static void test_a_queue_that_never_empties(void **state)
{
    struct side side;

    (void)state;
    rdm_open(&side);
    floods = true;
    assert_int_equal(ofp_endpoint_close(side.endpoint, 0), 0);
    assert_true(polled >= cq_size);
    rest_close(&side);
}

static void test_what_was_there_is_taken_without_any_time(void **state)
{
    struct side side;
    uint64_t receives;

    (void)state;
    rdm_open(&side);
    receives = head - tail;
    assert_true(receives > 64);
    flushed = receives;
    assert_int_equal(ofp_endpoint_close(side.endpoint, 0), 0);
    assert_int_equal(flushed, 0);
    assert_int_equal(polled, receives);
    rest_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_queue_that_never_empties),
        cmocka_unit_test(test_what_was_there_is_taken_without_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
