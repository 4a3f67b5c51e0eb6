/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints that follow the roster of a job: what ends when a rank departs, and when. */
#include "core_fixture.h"

static struct side a, b;
static struct ofp_roster *roster;

static int open_sides(bool offloads_matching)
{
    uint32_t itself, peers[2];
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    side_open(&a, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&a, &b);
    assert_int_equal(ofp_endpoint_address(b.endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(b.av, address, length, &itself), 0);
    peers[0] = itself;
    peers[1] = b.peer;
    assert_int_equal(ofp_roster_open(2, &roster), 0);
    assert_int_equal(ofp_roster_follow(roster, b.endpoint, peers, true), 0);
    return 0;
}

static int open_matched(void **state)
{
    (void)state;
    return open_sides(false);
}

static int open_offloaded(void **state)
{
    (void)state;
    return open_sides(true);
}

static int close_b(void **state)
{
    (void)state;
    /* Its handle may go first. */
    ofp_roster_close(roster);
    side_close(&b);
    forget_warnings();
    return 0;
}

static int close_both(void **state)
{
    side_close(&a);
    return close_b(state);
}

static void *depart(void *died)
{
    assert_int_equal(ofp_roster_depart(roster, 1, died != NULL), 0);
    return NULL;
}

/* As a job does it: from a thread that has nothing to do with the domain. */
static void departs(bool died)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, depart, died ? &died : NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void expect_end(uint64_t context, int error, const char *words)
{
    struct ofp_completion row = next_completion(&b, NULL);
    char text[OFP_TEXT_MAX];

    assert_int_equal(row.context, context);
    assert_int_equal(row.error, error);
    assert_true(ofp_reason(row.provider_error, text, sizeof(text)));
    assert_string_equal(text, words);
}

static void expect_nothing(void)
{
    struct ofp_completion row;

    for (int round = 0; round < 100; round++) {
        ofp_domain_progress(b.domain);
        assert_int_equal(ofp_cq_read(b.cq, &row, 1), 0);
    }
}

static void post(struct side *side, struct ofp_operation operation)
{
    assert_int_equal(ofp_post(side->endpoint, &operation, 1), 1);
}

static void test_a_peer_that_was_never_connected(void **state)
{
    char in[8], out[8] = "";

    (void)state;
    post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, 8, 1));
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 2));
    departs(false);
    expect_end(2, OFP_EPEERLEFT, "rank 1 has left the job");
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 3));
    expect_end(3, OFP_EPEERLEFT, "rank 1 has left the job");
    post(&b, tagged(OFP_TSEND, b.peer, 1, out, 8, 4));
    expect_end(4, OFP_EPEERLEFT, "rank 1 has left the job");
    expect_nothing();
}

static void test_the_first_word_counts(void **state)
{
    char in[8];

    (void)state;
    departs(true);
    departs(false);
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 1));
    expect_end(1, OFP_EPEERDIED, "rank 1 of the job has died");
    assert_int_equal(ofp_roster_depart(roster, 2, false), -EINVAL);
}

static void test_who_follows_late_hears_what_was_before(void **state)
{
    uint32_t peers[2] = {b.peer, b.peer};
    struct ofp_roster *other;
    char in[8];

    (void)state;
    assert_int_equal(ofp_roster_open(2, &other), 0);
    assert_int_equal(ofp_roster_depart(other, 1, false), 0);
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 1));
    assert_int_equal(ofp_roster_follow(other, b.endpoint, peers, true), 0);
    ofp_roster_close(other);
    expect_end(1, OFP_EPEERLEFT, "rank 1 has left the job");
}

static void test_what_it_sent_is_received_before(void **state)
{
    char in[8] = "", out[8] = "message";

    (void)state;
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, 8, 1));
    assert_int_equal(next_completion(&a, &b).error, 0);
    departs(false);
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 2));
    assert_int_equal(next_completion(&b, &a).error, 0);
    assert_string_equal(in, "message");
    /* The connection is there: more may come. */
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 3));
    expect_nothing();
    side_close(&a);
    expect_end(3, OFP_EPEERLEFT, "rank 1 has left the job");
}

static void test_the_end_of_the_connection_comes_before_the_news(void **state)
{
    char in[8], out[8] = "";
    uint64_t begun;

    (void)state;
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 1));
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, 8, 1));
    assert_int_equal(next_completion(&b, &a).error, 0);
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 2));
    begun = ofpi_clock_read();
    side_close(&a);
    if (ofpi_clock_read() - begun < 500000000)
        expect_nothing();
    post(&b, tagged(OFP_TSEND, b.peer, 1, out, 8, 3));
    departs(true);
    for (int i = 0; i < 2; i++) {
        struct ofp_completion row = next_completion(&b, NULL);

        assert_int_equal(row.error, OFP_EPEERDIED);
    }
}

static void test_a_transport_that_matches_has_time_to_match(void **state)
{
    char in[8] = "", out[8] = "message";

    (void)state;
    post(&a, tagged(OFP_TSEND, a.peer, 1, out, 8, 1));
    assert_int_equal(next_completion(&a, &b).error, 0);
    departs(false);
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 2));
    assert_int_equal(next_completion(&b, &a).error, 0);
    assert_string_equal(in, "message");
    post(&b, tagged(OFP_TRECV, b.peer, 1, in, 8, 3));
    expect_end(3, OFP_EPEERLEFT, "rank 1 has left the job");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_peer_that_was_never_connected, open_matched, close_both),
        cmocka_unit_test_setup_teardown(test_the_first_word_counts, open_matched, close_both),
        cmocka_unit_test_setup_teardown(test_who_follows_late_hears_what_was_before, open_matched, close_both),
        cmocka_unit_test_setup_teardown(test_what_it_sent_is_received_before, open_matched, close_b),
        cmocka_unit_test_setup_teardown(test_the_end_of_the_connection_comes_before_the_news, open_matched, close_b),
        cmocka_unit_test_setup_teardown(test_a_transport_that_matches_has_time_to_match, open_offloaded, close_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
