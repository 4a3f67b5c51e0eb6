/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives of unknown size where the transport matches, and a transport that cancels in its own time. */
#include "peer/pending.h"
#include "progress/progress.h"
#include "request_fixture.h"

static struct side a, b;

static int open_both(void **state)
{
    (void)state;
    side_open(&a, true, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, true, OFP_PROGRESS_MANUAL, 64);
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

static void post(struct side *side, struct ofp_operation op) { assert_int_equal(ofp_post(side->endpoint, &op, 1), 1); }

static ofp_request_t hold(uint64_t tag)
{
    struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, tag, NULL, 0, 0);
    ofp_request_t request;

    op.flags = OFP_HOLD | OFP_CLAIM;
    request = request_start(b.endpoint, &op);
    assert_true(request > 0);
    return request;
}

/* Send a text under a tag and let everything happen that can. */
static void say(const char *text, uint64_t tag)
{
    post(&a, tagged(OFP_TSEND, a.peer, tag, text, strlen(text), 1));
    for (int i = 0; i < 20; i++) {
        ofp_domain_progress(a.domain);
        ofp_domain_progress(b.domain);
    }
}

static void assert_received(uint64_t context, const char *buffer, const char *text)
{
    struct ofp_completion row = next_completion(&b, &a);

    assert_int_equal(row.context, context);
    assert_int_equal(row.error, 0);
    assert_int_equal(row.length, strlen(text));
    assert_memory_equal(buffer, text, strlen(text));
}

static void assert_nothing_more(void)
{
    struct ofp_completion row;

    say("nobody's", 99);
    assert_int_equal(ofp_cq_read(b.cq, &row, 1), 0);
}

static uint64_t posted(void)
{
    struct ofp_endpoint_statistics statistics;

    assert_int_equal(ofp_endpoint_statistics(b.endpoint, &statistics), 0);
    return statistics.posted_receives;
}

static void test_message_given_back_to_a_posted_receive(void **state)
{
    char first[8] = "", second[8] = "";
    ofp_request_t request = hold(5);

    (void)state;
    post(&b, tagged(OFP_TRECV, b.peer, 5, first, sizeof(first), 11));
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 5, second, sizeof(second), 12));
    say("message", 5);
    assert_int_equal(ofp_request_finished(request), 1);
    assert_int_equal(request_take(request, 0).length, 7);
    assert_int_equal(ofp_request_unclaim(request), 0);
    ofp_request_abandon(request, false);
    assert_received(11, first, "message");
    say("later", 5);
    assert_received(12, second, "later");
    assert_nothing_more();
}

/* The number of a peer that was removed and inserted again is no longer its place in the table. */
static void test_message_given_back_to_a_receive_of_a_later_peer(void **state)
{
    char buffer[8] = "", address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);
    ofp_request_t request;

    assert_int_equal(ofp_endpoint_address(a.endpoint, address, &length), 0);
    while (ofpi_index_of_id(b.peer) == b.peer) {
        assert_int_equal(ofp_av_remove(b.av, b.peer), 0);
        assert_int_equal(ofp_av_insert(b.av, address, length, &b.peer), 0);
    }
    (void)state;
    request = hold(5);
    post(&b, tagged(OFP_TRECV, b.peer, 5, buffer, sizeof(buffer), 11));
    say("message", 5);
    assert_int_equal(ofp_request_finished(request), 1);
    assert_int_equal(ofp_request_unclaim(request), 0);
    ofp_request_abandon(request, false);
    assert_received(11, buffer, "message");
    assert_nothing_more();
}

/* ------------------------------------------------------------------------------------------- slow to take back */

static struct ofp_pending *asked_back;
static const struct ofp_endpoint_ops *true_ops;

static int cancel_slowly(struct ofp_endpoint *endpoint, struct ofp_pending *pending)
{
    (void)endpoint;
    asked_back = pending;
    return -EINPROGRESS;
}

/* From here on the endpoint's transport only begins to take a receive back. */
static struct ofp_endpoint_ops slow_ops(void)
{
    struct ofp_endpoint_ops ops = *b.endpoint->ops;

    true_ops = b.endpoint->ops;
    ops.cancel = cancel_slowly;
    asked_back = NULL;
    return ops;
}

/* What was asked back is cancelled at last. */
static void come_back(void)
{
    b.endpoint->ops = true_ops;
    assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)b.domain), 0);
    assert_int_equal(true_ops->cancel(b.endpoint, asked_back), 0);
    ofpi_transfer_complete(asked_back, ECANCELED, 0);
    ofpi_domain_leave((struct ofpi_domain *)b.domain);
}

static void test_receive_that_comes_back_later_is_posted_again(void **state)
{
    struct ofp_endpoint_ops ops = slow_ops();
    char first[8] = "";
    ofp_request_t request = hold(5);

    (void)state;
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 5, first, sizeof(first), 11));
    say("message", 5);
    b.endpoint->ops = &ops;
    assert_int_equal(ofp_request_unclaim(request), 0);
    ofp_request_abandon(request, false);
    assert_non_null(asked_back);
    assert_int_equal(posted(), 1);
    come_back();
    assert_received(11, first, "message");
    assert_int_equal(posted(), 0);
    assert_nothing_more();
}

static void test_receive_that_is_taken_instead_leaves_it_to_the_next(void **state)
{
    struct ofp_endpoint_ops ops = slow_ops();
    char first[8] = "", second[8] = "";
    ofp_request_t request = hold(5);

    (void)state;
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 5, first, sizeof(first), 11));
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 5, second, sizeof(second), 12));
    say("message", 5);
    b.endpoint->ops = &ops;
    assert_int_equal(ofp_request_unclaim(request), 0);
    ofp_request_abandon(request, false);
    b.endpoint->ops = true_ops;
    say("later", 5);
    assert_received(11, first, "later");
    assert_received(12, second, "message");
    assert_int_equal(posted(), 0);
    assert_nothing_more();
}

/* Given back as it arrives, by an owner that is gone: another receive is asked back for it, not the one that it came to. */
static void test_message_for_a_request_that_was_left_is_the_next_receives(void **state)
{
    struct ofp_endpoint_ops ops = slow_ops();
    char first[8] = "";
    ofp_request_t request = hold(5);

    (void)state;
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 5, first, sizeof(first), 11));
    b.endpoint->ops = &ops;
    ofp_request_abandon(request, true);
    assert_non_null(asked_back);
    asked_back = NULL;
    say("message", 5);
    assert_non_null(asked_back);
    assert_int_equal(asked_back->operation.context, 11);
    come_back();
    assert_received(11, first, "message");
    assert_int_equal(posted(), 0);
    assert_nothing_more();
}

static void test_user_may_cancel_what_was_asked_back(void **state)
{
    struct ofp_endpoint_ops ops = slow_ops();
    char first[8] = "", second[8] = "";
    ofp_request_t request = hold(5);

    (void)state;
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 5, first, sizeof(first), 11));
    say("message", 5);
    b.endpoint->ops = &ops;
    assert_int_equal(ofp_request_unclaim(request), 0);
    ofp_request_abandon(request, false);
    b.endpoint->ops = true_ops;
    assert_int_equal(ofp_cancel(b.endpoint, 11), 0);
    assert_int_equal(next_completion(&b, &a).error, ECANCELED);
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 5, second, sizeof(second), 12));
    assert_received(12, second, "message");
    assert_nothing_more();
}

#define OVER(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(test_message_given_back_to_a_posted_receive),
        OVER(test_message_given_back_to_a_receive_of_a_later_peer),
        OVER(test_receive_that_comes_back_later_is_posted_again),
        OVER(test_receive_that_is_taken_instead_leaves_it_to_the_next),
        OVER(test_message_for_a_request_that_was_left_is_the_next_receives),
        OVER(test_user_may_cancel_what_was_asked_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
