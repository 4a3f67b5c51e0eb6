/* SPDX-License-Identifier: BSD-3-Clause */
/* Payload that the fake provider moves after its message began: streams, questions and their answers; and the inbox that rests. */
#include "fake_fixture.h"

/* What is left of a side whose endpoint is closed. */
static void close_rest(struct side *side)
{
    assert_int_equal(ofp_av_close(side->av), 0);
    assert_int_equal(ofp_cq_close(side->cq), 0);
    assert_int_equal(ofp_domain_close(side->domain), 0);
}

/* Beyond the eager size with delivery: piece by piece into the core's memory, in its place among messages that are whole before it. */
static void test_a_stream_keeps_its_place(void **state)
{
    enum { SIZE = 20000 };
    static char out[SIZE], in[SIZE];
    struct ofp_endpoint_statistics now;
    struct ofp_completion row;

    (void)state;
    memset(out, 's', SIZE);
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, SIZE, 1), OFP_DELIVERY_COMPLETE);
    post(&a, tagged(OFP_TSEND, a.peer, 1, "next", 5, 2), 0);
    assert_int_equal(next_completion(&a, NULL).context, 2);
    /* The first call takes both messages and the second a piece of the long one, which is not delivered by that. */
    ofp_domain_progress(b.domain);
    ofp_domain_progress(b.domain);
    assert_int_equal(ofp_endpoint_statistics(b.endpoint, &now), 0);
    assert_int_equal(now.unexpected_messages, 2);
    ofp_domain_progress(a.domain);
    assert_int_equal(ofp_cq_read(a.cq, &row, 1), 0);
    /* It is matched while it fills. */
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, SIZE, 3), 0);
    assert_int_equal(ofp_cq_read(b.cq, &row, 1), 0);
    assert_int_equal(next_completion(&b, NULL).context, 3);
    assert_memory_equal(in, out, SIZE);
    assert_int_equal(next_completion(&a, &b).context, 1);
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, SIZE, 4), 0);
    assert_int_equal(next_completion(&b, NULL).length, 5);
}

/* The sender goes in the middle: what was begun and nobody has matched goes with it. */
static void test_a_stream_ends_with_its_receiver(void **state)
{
    static char out[20000];

    (void)state;
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, sizeof(out), 1), OFP_DELIVERY_COMPLETE);
    ofp_domain_progress(a.domain);
    ofp_domain_progress(b.domain);
    close_endpoint(&b);
    assert_int_equal(next_completion(&a, &b).error, OFP_EPEERLOST);
    close_rest(&b);
}

/* An announced payload is not there before it was asked for: the receive waits for its sender's progress. */
static void test_a_long_payload_is_asked_for(void **state)
{
    enum { SIZE = 5000 };
    static char out[SIZE], in[SIZE];
    struct ofp_completion row;

    (void)state;
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, SIZE, 1), OFP_MATCH_COMPLETE);
    ofp_domain_progress(a.domain);
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, SIZE, 2), 0);
    for (int i = 0; i < 10; i++)
        ofp_domain_progress(b.domain);
    assert_int_equal(ofp_cq_read(b.cq, &row, 1), 0);
    /* What is sent is what lies there when it is asked for. */
    memset(out, 'p', SIZE);
    assert_int_equal(next_completion(&b, &a).context, 2);
    assert_memory_equal(in, out, SIZE);
    assert_int_equal(next_completion(&a, &b).context, 1);
}

/* The question is under way when the one who asked is lost: its answer finds no receive. */
static void test_an_answer_that_nobody_waits_for(void **state)
{
    enum { SIZE = 5000 };
    static char out[SIZE], in[SIZE];
    struct ofp_completion row;

    (void)state;
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, SIZE, 2), 0);
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, SIZE, 1), OFP_MATCH_COMPLETE);
    ofp_domain_progress(a.domain);
    ofp_domain_progress(b.domain);
    ofp_domain_progress(a.domain);
    assert_int_equal(ofp_av_remove(b.av, b.peer), 0);
    assert_int_equal(next_completion(&b, NULL).error, ECANCELED);
    assert_true(completed(&a, &row));
    assert_int_equal(ofp_cq_read(b.cq, &row, 1), 0);
}

/* Above the bound senders announce what they would have handed over, and hand it over again when there is room. */
static void test_announcements_while_there_is_no_room(void **state)
{
    struct ofp_endpoint_attr attr = {.tx_cq = b.cq, .rx_cq = b.cq, .av = b.av, .unexpected_limit = 1000};
    struct ofp_completion row;
    char text[OFP_TEXT_MAX], out[400] = "", in[400];

    (void)state;
    close_endpoint(&b);
    assert_int_equal(ofp_endpoint_open(b.domain, &attr, &b.endpoint, text, sizeof(text)), 0);
    sides_meet(&a, &b);
    for (uint64_t i = 0; i < 2; i++)
        post(&a, tagged(OFP_TSEND, a.peer, 1, out, sizeof(out), i), 0);
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(next_completion(&a, NULL).context, i);
    settle();
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, sizeof(out), 2), 0);
    assert_false(completed(&a, &row));
    for (int i = 0; i < 3; i++) {
        post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, sizeof(in), 5), 0);
        assert_int_equal(next_completion(&b, &a).length, sizeof(out));
    }
    assert_int_equal(next_completion(&a, &b).context, 2);
    settle();
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, sizeof(out), 3), 0);
    assert_int_equal(next_completion(&a, NULL).context, 3);
}

/* After a message the inbox rests until a timer has run; an endpoint that closes meanwhile takes its timer along. */
static void test_the_inbox_rests(void **state)
{
    uint64_t first, value = 7;

    (void)state;
    for (int i = 0; i < 2; i++)
        post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, &value, sizeof(value), 0), 0);
    post(&a, tagged(OFP_TSEND, a.peer, 1, &value, sizeof(value), 0), OFP_INJECT);
    ofp_domain_progress(a.domain);
    first = ofpi_clock_read();
    next_completion(&b, NULL);
    post(&a, tagged(OFP_TSEND, a.peer, 1, &value, sizeof(value), 0), OFP_INJECT);
    next_completion(&b, NULL);
    assert_true(ofpi_clock_read() - first >= 20000);
    close_endpoint(&b);
    for (uint64_t until = ofpi_clock_read() + 100000; ofpi_clock_read() < until;)
        ofp_domain_progress(b.domain);
    close_rest(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"test_a_stream_keeps_its_place", test_a_stream_keeps_its_place, open_matched, close_both, NULL},
        {"test_a_stream_ends_with_its_receiver", test_a_stream_ends_with_its_receiver, open_matched, close_both, NULL},
        {"test_a_long_payload_is_asked_for", test_a_long_payload_is_asked_for, open_matched, close_both, NULL},
        {"test_an_answer_that_nobody_waits_for", test_an_answer_that_nobody_waits_for, open_matched, close_both, NULL},
        {"test_announcements_while_there_is_no_room", test_announcements_while_there_is_no_room, open_matched,
         close_both, NULL},
        {"test_the_inbox_rests", test_the_inbox_rests, open_offloaded, close_both, NULL},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
