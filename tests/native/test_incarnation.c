/* SPDX-License-Identifier: BSD-3-Clause */
/* Incarnations of peers: their numbers, and operations that are bound to one. */
#include "fake_fixture.h"

#include "match/receive_context.h"
#include "peer/peer_state.h"
#include "progress/progress.h"

static struct ofpi_peer *find_peer(struct side *side)
{
    return ofpi_peer_find_at((struct ofpi_endpoint *)side->endpoint, side->peer);
}

static void lose_peer_of(struct side *side, int error)
{
    assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)side->domain), 0);
    ofpi_peer_lost(&find_peer(side)->base, error, false, "the test says so");
    ofpi_domain_leave((struct ofpi_domain *)side->domain);
}

/* The connection is over; `b` hears of that from the other side. */
static void lose_connection(int error)
{
    settle();
    lose_peer_of(&a, error);
    settle();
}

static struct ofp_operation bound(struct ofp_operation op, int64_t number)
{
    op.flags |= OFP_BOUND;
    op.reserved = (uint32_t)number;
    return op;
}

static int64_t incarnation(struct side *side) { return ofp_peer_incarnation(side->endpoint, side->peer); }

static void send_letter(const char *letter, uint64_t tag)
{
    struct ofp_completion row;

    post(&a, tagged(OFP_TSEND, a.peer, tag, letter, 1, 0), 0);
    assert_true(completed(&a, &row));
    assert_int_equal(row.error, 0);
}

static void expect_letter(const char *memory, char letter, uint64_t context)
{
    struct ofp_completion row = {0};

    assert_true(completed(&b, &row));
    assert_int_equal(row.error, 0);
    assert_int_equal(row.context, context);
    assert_int_equal(*memory, letter);
}

static void expect_end(struct side *side, uint64_t context, int error)
{
    struct ofp_completion row = {0};

    assert_true(completed(side, &row));
    assert_int_equal(row.context, context);
    assert_int_equal(row.error, error);
}

static void expect_nothing(struct side *side)
{
    struct ofp_completion row;

    assert_false(completed(side, &row));
}

/* ----------------------------------------------------------------------------------------------------------- numbers */

static void test_each_time_up_is_a_number(void **state)
{
    (void)state;
    assert_int_equal(incarnation(&a), 0);
    send_letter("x", 1);
    assert_int_equal(incarnation(&a), 1);
    assert_int_equal(incarnation(&b), 1);
    lose_connection(ECONNRESET);
    assert_int_equal(incarnation(&a), 0);
    send_letter("y", 1);
    assert_int_equal(incarnation(&a), 2);
}

static void test_numbers_skip_0_and_are_the_endpoints(void **state)
{
    (void)state;
    ((struct ofpi_endpoint *)a.endpoint)->last_incarnation = UINT32_MAX;
    send_letter("x", 1);
    assert_int_equal(incarnation(&a), 1);
}

static void test_events_carry_the_number(void **state)
{
    struct ofp_eq_attr eq_attr = {0};
    struct ofp_endpoint_attr attr = {.tx_cq = a.cq, .rx_cq = a.cq, .av = a.av};
    struct ofp_event event;
    char text[OFP_TEXT_MAX], data[OFP_EVENT_DATA_MAX];

    (void)state;
    close_endpoint(&a);
    assert_int_equal(ofp_eq_open(a.domain, &eq_attr, &attr.eq), 0);
    assert_int_equal(ofp_endpoint_open(a.domain, &attr, &a.endpoint, text, sizeof(text)), 0);
    for (uint64_t number = 1; number <= 2; number++) {
        send_letter("x", 1);
        lose_peer_of(&a, ECONNRESET);
        assert_int_equal(ofp_eq_read(attr.eq, &event, data), 1);
        assert_int_equal(event.kind, OFP_EVENT_PEER_UP);
        assert_int_equal(event.handle, number);
        assert_int_equal(ofp_eq_read(attr.eq, &event, data), 1);
        assert_int_equal(event.kind, OFP_EVENT_PEER_LOST);
        assert_int_equal(event.handle, number);
    }
    /* An attempt that failed ended no incarnation. */
    close_endpoint(&b);
    post(&a, tagged(OFP_TSEND, a.peer, 1, "z", 1, 0), 0);
    expect_end(&a, 0, ECONNREFUSED);
    assert_int_equal(ofp_eq_read(attr.eq, &event, data), 1);
    assert_int_equal(event.kind, OFP_EVENT_PEER_LOST);
    assert_int_equal(event.handle, 0);
    close_endpoint(&a);
    assert_int_equal(ofp_eq_close(attr.eq), 0);
    /* For the end of the test, which closes both. */
    attr.eq = NULL;
    assert_int_equal(ofp_endpoint_open(a.domain, &attr, &a.endpoint, text, sizeof(text)), 0);
    attr = (struct ofp_endpoint_attr){.tx_cq = b.cq, .rx_cq = b.cq, .av = b.av};
    assert_int_equal(ofp_endpoint_open(b.domain, &attr, &b.endpoint, text, sizeof(text)), 0);
}

/* ------------------------------------------------------------------------------------------------------------- sends */

static void test_a_bound_send_never_goes_to_another(void **state)
{
    (void)state;
    send_letter("x", 1);
    post(&a, bound(tagged(OFP_TSEND, a.peer, 1, "y", 1, 11), 1), 0);
    expect_end(&a, 11, 0);
    lose_connection(ETIMEDOUT);
    post(&a, bound(tagged(OFP_TSEND, a.peer, 1, "z", 1, 12), 1), 0);
    expect_end(&a, 12, OFP_EPEERLOST);
    /* The bound operation did not connect. */
    assert_int_equal(incarnation(&a), 0);
    post(&a, bound(tagged(OFP_TSEND, a.peer, 1, "z", 1, 13), 0), 0);
    expect_end(&a, 13, OFP_EPEERLOST);
    send_letter("w", 1);
    post(&a, bound(tagged(OFP_TSEND, a.peer, 1, "z", 1, 14), 1), 0);
    expect_end(&a, 14, OFP_EPEERLOST);
    post(&a, bound(tagged(OFP_TSEND, a.peer, 1, "z", 1, 15), 3), 0);
    expect_end(&a, 15, OFP_EPEERLOST);
    post(&a, bound(tagged(OFP_TSEND, a.peer, 1, "z", 1, 16), 2), OFP_INJECT);
    expect_nothing(&a);
    assert_int_equal(incarnation(&a), 2);
}

static void test_a_bound_send_in_flight_ends_with_the_incarnation(void **state)
{
    static const char large[1 << 20];

    (void)state;
    send_letter("x", 1);
    post(&a, bound(tagged(OFP_TSEND, a.peer, 2, large, sizeof(large), 21), 1), 0);
    post(&a, bound(tagged(OFP_TSEND, a.peer, 2, large, sizeof(large), 22), 1), OFP_FENCE);
    post(&a, tagged(OFP_TSEND, a.peer, 2, large, sizeof(large), 23), 0);
    expect_nothing(&a);
    lose_peer_of(&a, ETIMEDOUT);
    expect_end(&a, 21, OFP_EPEERLOST);
    expect_end(&a, 22, OFP_EPEERLOST);
    expect_end(&a, 23, ETIMEDOUT);
}

static void test_what_this_side_ends_is_cancelled(void **state)
{
    char memory[1];

    (void)state;
    send_letter("x", 1);
    post(&b, bound(tagged(OFP_TRECV, b.peer, 2, memory, 1, 31), incarnation(&b)), 0);
    assert_int_equal(ofp_cancel(b.endpoint, 31), 0);
    expect_end(&b, 31, ECANCELED);
    post(&b, bound(tagged(OFP_TRECV, b.peer, 2, memory, 1, 32), incarnation(&b)), 0);
    assert_int_equal(ofp_av_remove(b.av, b.peer), 0);
    expect_end(&b, 32, ECANCELED);
}

/* ---------------------------------------------------------------------------------------------------------- receives */

static void test_a_bound_receive_ends_with_its_incarnation(void **state)
{
    char first[1], second[1];

    (void)state;
    send_letter("x", 1);
    post(&b, bound(tagged(OFP_TRECV, b.peer, 2, first, 1, 41), 1), 0);
    post(&b, tagged(OFP_TRECV, b.peer, 2, second, 1, 42), 0);
    lose_connection(ECONNRESET);
    expect_end(&b, 41, OFP_EPEERLOST);
    post(&b, bound(tagged(OFP_TRECV, b.peer, 2, first, 1, 43), 1), 0);
    expect_end(&b, 43, OFP_EPEERLOST);
    expect_nothing(&b);
    send_letter("y", 2);
    expect_letter(second, 'y', 42);
    post(&b, bound(tagged(OFP_TRECV, b.peer, 2, first, 1, 44), 2), 0);
    send_letter("z", 2);
    expect_letter(first, 'z', 44);
}

static void test_a_bound_receive_matches_no_older_message(void **state)
{
    char memory[1];
    struct ofp_operation receive;

    (void)state;
    send_letter("1", 7);
    lose_connection(ECONNRESET);
    send_letter("2", 7);
    lose_connection(ECONNRESET);
    send_letter("3", 7);
    send_letter("4", 7);
    receive = tagged(OFP_TRECV, b.peer, 7, memory, 1, 51);
    post(&b, bound(receive, 3), 0);
    expect_letter(memory, '3', 51);
    /* What came in an ended incarnation is still there for whoever names that one. */
    post(&b, bound(receive, 2), 0);
    expect_letter(memory, '2', 51);
    post(&b, bound(receive, 2), 0);
    expect_end(&b, 51, OFP_EPEERLOST);
    receive.ignore = 0xff;
    post(&b, bound(receive, 3), 0);
    expect_letter(memory, '4', 51);
    post(&b, receive, 0);
    expect_letter(memory, '1', 51);
}

static void test_a_bound_look(void **state)
{
    struct ofp_completion row;

    (void)state;
    send_letter("1", 7);
    lose_connection(ECONNRESET);
    send_letter("2", 7);
    post(&b, bound(tagged(OFP_TRECV, b.peer, 7, NULL, 0, 61), 2), OFP_PEEK | OFP_DISCARD);
    expect_end(&b, 61, 0);
    post(&b, bound(tagged(OFP_TRECV, b.peer, 7, NULL, 0, 62), 2), OFP_PEEK);
    expect_end(&b, 62, ENOMSG);
    post(&b, tagged(OFP_TRECV, b.peer, 7, NULL, 0, 63), OFP_PEEK);
    assert_true(completed(&b, &row));
    assert_int_equal(row.error, 0);
    assert_int_equal(row.buffer_offset, 0);
}

static void test_a_bound_buffer_for_many(void **state)
{
    char memory[256];
    struct ofp_operation many = tagged(OFP_TRECV, b.peer, 7, memory, sizeof(memory), 71);
    struct ofp_completion row;

    (void)state;
    send_letter("1", 7);
    lose_connection(ECONNRESET);
    send_letter("2", 7);
    post(&b, bound(many, 2), OFP_MULTI_RECV);
    expect_letter(memory, '2', 71);
    send_letter("3", 7);
    expect_letter(memory + 1, '3', 71);
    lose_connection(ECONNRESET);
    assert_true(completed(&b, &row));
    assert_int_equal(row.flags, OFP_COMPLETED_MULTI_RECV);
    assert_int_equal(row.error, OFP_EPEERLOST);
    /* Of an ended one it gets what is there, and ends. */
    post(&b, bound(many, 1), OFP_MULTI_RECV);
    expect_letter(memory, '1', 71);
    assert_true(completed(&b, &row));
    assert_int_equal(row.flags, OFP_COMPLETED_MULTI_RECV);
    assert_int_equal(row.error, OFP_EPEERLOST);
}

/* ------------------------------------------------------------------------------------------------------- set aside */

static ofp_request_t start_request(struct ofp_operation op, uint64_t flags)
{
    ofp_request_t request;

    op.flags |= flags;
    request = ofp_request_start(b.endpoint, &op, 0, 0);
    assert_true(request > 0);
    return request;
}

static void test_a_returned_message_stays_in_its_incarnation(void **state)
{
    char memory[1];
    struct ofp_completion row;
    ofp_request_t held, present, any;

    (void)state;
    send_letter("1", 7);
    settle();
    held = start_request(tagged(OFP_TRECV, b.peer, 7, NULL, 0, 0), OFP_HOLD | OFP_CLAIM);
    assert_int_equal(ofp_request_take(held, 0, &row), 1);
    assert_int_equal(row.flags & OFP_COMPLETED_CLAIM, OFP_COMPLETED_CLAIM);
    assert_int_equal(row.buffer_offset, 1);
    lose_connection(ECONNRESET);
    send_letter("2", 8);
    settle();
    present = start_request(bound(tagged(OFP_TRECV, b.peer, 7, memory, 1, 0), 2), 0);
    any = start_request(tagged(OFP_TRECV, b.peer, 7, memory, 1, 0), 0);
    assert_int_equal(ofp_request_unclaim(held), 0);
    assert_int_equal(ofp_request_finished(present), 0);
    assert_int_equal(ofp_request_take(any, 0, &row), 1);
    assert_int_equal(row.error, 0);
    assert_int_equal(*memory, '1');
    ofp_request_abandon(present, true);
}

static void test_a_message_set_aside_whose_payload_is_lost(void **state)
{
    static const char large[1 << 20];
    static char memory[sizeof(large)];
    struct ofp_completion row;
    ofp_request_t held;

    (void)state;
    send_letter("x", 1);
    post(&a, tagged(OFP_TSEND, a.peer, 7, large, sizeof(large), 0), 0);
    settle();
    held = start_request(bound(tagged(OFP_TRECV, b.peer, 7, NULL, 0, 0), 1), OFP_HOLD | OFP_CLAIM);
    assert_int_equal(ofp_request_take(held, 0, &row), 1);
    lose_peer_of(&b, ETIMEDOUT);
    assert_int_equal(ofp_request_claim(held, OFP_REGION_PROCESS, (uintptr_t)memory, sizeof(memory), &row), 1);
    assert_int_equal(row.error, OFP_EPEERLOST);
}

/* ----------------------------------------------------------------------------------------------------------- refused */

static void test_what_cannot_be_bound(void **state)
{
    char memory[1];
    struct ofp_operation receive = bound(tagged(OFP_TRECV, OFP_PEER_ANY, 1, memory, 1, 0), 1);
    struct ofp_operation claim = bound(tagged(OFP_TRECV, b.peer, 1, memory, 1, 0), 1);

    (void)state;
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), -EINVAL);
    claim.flags |= OFP_CLAIM;
    assert_int_equal(ofp_post(b.endpoint, &claim, 1), -EINVAL);
}

static void test_a_transport_that_matches_binds_nothing(void **state)
{
    char memory[1];
    struct ofp_operation send = bound(tagged(OFP_TSEND, a.peer, 1, "x", 1, 0), 1);
    struct ofp_operation receive = bound(tagged(OFP_TRECV, a.peer, 1, memory, 1, 0), 1);

    (void)state;
    assert_int_equal(ofp_post(a.endpoint, &send, 1), -EOPNOTSUPP);
    assert_int_equal(ofp_post(a.endpoint, &receive, 1), -EOPNOTSUPP);
    assert_int_equal(incarnation(&a), -EOPNOTSUPP);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_matched, close_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_time_up_is_a_number),
        TEST(test_numbers_skip_0_and_are_the_endpoints),
        TEST(test_events_carry_the_number),
        TEST(test_a_bound_send_never_goes_to_another),
        TEST(test_a_bound_send_in_flight_ends_with_the_incarnation),
        TEST(test_what_this_side_ends_is_cancelled),
        TEST(test_a_bound_receive_ends_with_its_incarnation),
        TEST(test_a_bound_receive_matches_no_older_message),
        TEST(test_a_bound_look),
        TEST(test_a_bound_buffer_for_many),
        TEST(test_a_returned_message_stays_in_its_incarnation),
        TEST(test_a_message_set_aside_whose_payload_is_lost),
        TEST(test_what_cannot_be_bound),
        cmocka_unit_test_setup_teardown(test_a_transport_that_matches_binds_nothing, open_offloaded, close_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
