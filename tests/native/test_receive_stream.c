/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that a stream brings: where their payload goes, their place in the order, and every way to end. */
#include "match/receive_stream.h"
#include "receive_fixture.h"

#define LIMIT 1000

static int setup(void **state) { return receive_fixture_set_up(state, LIMIT, 4); }

static int teardown(void **state)
{
    struct receive_fixture *fixture = *state;

    assert_quiet(fixture);
    return receive_fixture_tear_down(state);
}

static struct ofp_receive *begin(struct receive_fixture *fixture, uint64_t tag, uint64_t length)
{
    struct ofp_message message = message_from(fixture, 1, tag, length);
    struct ofp_receive *receive = NULL;

    assert_int_equal(
        ofpi_message_begun(fixture->context, endpoint_of(fixture), &message, OFP_ROOM_UNEXPECTED, &receive), 0);
    return receive;
}

static int refused(struct receive_fixture *fixture, uint64_t tag, uint64_t length)
{
    struct ofp_message message = message_from(fixture, 1, tag, length);
    struct ofp_receive *receive;

    return ofpi_message_begun(fixture->context, endpoint_of(fixture), &message, OFP_ROOM_UNEXPECTED, &receive);
}

static void want(struct receive_fixture *fixture, uint64_t tag, uint64_t context, void *memory, uint64_t length,
                 uint64_t flags)
{
    assert_int_equal(
        post(fixture,
             (struct posting){
                 .peer = 1, .tag = tag, .context = context, .memory = memory, .length = length, .flags = flags}),
        0);
}

static void test_into_the_posted_buffer(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_receive *receive;
    char memory[4] = "";

    want(fixture, 5, 1, memory, 4, 0);
    receive = begin(fixture, 5, 6);
    assert_ptr_equal(receive->iov[0].iov_base, memory);
    assert_int_equal(receive->length, 4);
    assert_quiet(fixture);
    memcpy(receive->iov[0].iov_base, "abcd", 4);
    ofpi_receive_complete(receive, 0, 0);
    assert_completed(fixture, 1, OFP_ETRUNC);
    assert_memory_equal(memory, "abcd", 4);
}

/* The first that begins is the first that is received, although the second is whole before it. */
static void test_its_place_in_the_order(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_receive *first = begin(fixture, 5, 100);
    char memory[100] = "", other[100] = "";

    assert_int_equal(arrive(fixture, 1, 5, "second", 7), 0);
    ofpi_receive_write(first, 0, "fir", 3);
    want(fixture, 5, 1, memory, 100, 0);
    want(fixture, 5, 2, other, 100, 0);
    assert_completed(fixture, 2, 0);
    assert_string_equal(other, "second");
    assert_quiet(fixture);
    ofpi_receive_write(first, 3, "st", 3);
    ofpi_receive_complete(first, 0, 0);
    assert_completed(fixture, 1, 0);
    assert_string_equal(memory, "first");
    assert_int_equal(statistics_of(fixture).unexpected_bytes, 0);
}

static void test_whole_before_it_is_wanted(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_receive *receive = begin(fixture, 5, 4);
    char memory[4];

    ofpi_receive_write(receive, 0, "abcdX", 5);
    ofpi_receive_complete(receive, 0, 0);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 1);
    want(fixture, 5, 1, memory, 4, 0);
    assert_completed(fixture, 1, 0);
    assert_memory_equal(memory, "abcd", 4);
}

static void test_the_bound(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_message message = message_from(fixture, 1, 9, 500);
    struct ofp_receive *receive = begin(fixture, 5, 600), *promised;
    char memory[500];

    assert_int_equal(refused(fixture, 6, 500), -ENOBUFS);
    assert_int_equal(refused(fixture, 6, UINT64_MAX / 2), -ENOBUFS);
    /* What is expected needs no room. */
    want(fixture, 6, 1, memory, 500, 0);
    ofpi_receive_complete(begin(fixture, 6, 500), 0, 0);
    assert_completed(fixture, 1, 0);
    assert_int_equal(ofpi_message_begun(fixture->context, endpoint_of(fixture), &message, OFP_ROOM_PROMISED, &promised),
                     0);
    assert_true(ofpi_receive_context_is_announce_only(fixture->context));
    ofpi_receive_complete(promised, ECONNRESET, 0);
    ofpi_receive_complete(receive, ECONNRESET, 0);
    assert_int_equal(statistics_of(fixture).unexpected_bytes, 0);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 0);
    assert_false(ofpi_receive_context_is_announce_only(fixture->context));
}

static int keep_short(struct receive_fixture *fixture, uint64_t tag, const char *payload, uint64_t length)
{
    struct ofp_message message = message_from(fixture, 1, tag, length);
    struct ofp_receive *receive;
    int result = ofpi_message_begun(fixture->context, endpoint_of(fixture), &message, OFP_ROOM_ANNOUNCED, &receive);

    if (result)
        return result;
    ofpi_receive_write(receive, 0, payload, length);
    ofpi_receive_complete(receive, 0, 0);
    return 0;
}

/* What cannot go back to its sender takes the place of an announcement, and only of one. */
static void test_short_messages_in_place_of_announcements(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_receive *first = begin(fixture, 5, 700);
    char payload[OFP_SHORT_MESSAGE + 1], memory[700];

    memset(payload, 'p', sizeof(payload));
    ofpi_receive_complete(first, 0, 0);
    assert_int_equal(arrive(fixture, 1, 6, payload, 8), -EAGAIN);
    assert_int_equal(keep_short(fixture, 6, payload, OFP_SHORT_MESSAGE + 1), -ENOBUFS);
    for (int i = 0; i < 4; i++)
        assert_int_equal(keep_short(fixture, 6, payload, i % 2 ? OFP_SHORT_MESSAGE : 1), 0);
    assert_int_equal(keep_short(fixture, 6, payload, 0), -ENOBUFS);
    assert_int_equal(statistics_of(fixture).announced_messages, 4);
    assert_int_equal(statistics_of(fixture).unexpected_bytes, 700 + 2 * OFP_SHORT_MESSAGE + 2);
    /* They are here: the loss of their sender does not concern them. */
    ofpi_receive_context_peer_lost(fixture->context, &fixture->peers[1], OFP_EPEERLOST);
    for (uint64_t i = 0; i < 4; i++) {
        want(fixture, 6, i, memory, 700, 0);
        assert_completed(fixture, i, 0);
        assert_memory_equal(memory, payload, i % 2 ? OFP_SHORT_MESSAGE : 1);
    }
    assert_int_equal(statistics_of(fixture).announced_messages, 0);
    /* The two bounds do not touch each other. */
    assert_int_equal(keep_short(fixture, 6, payload, 1), 0);
    assert_int_equal(arrive(fixture, 1, 6, payload, 8), -EAGAIN);
    want(fixture, 5, 7, memory, 700, 0);
    assert_completed(fixture, 7, 0);
    assert_int_equal(arrive(fixture, 1, 6, payload, 8), 0);
}

static void test_the_stream_breaks(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[100];

    want(fixture, 1, 1, memory, 100, 0);
    begin(fixture, 1, 100);
    begin(fixture, 2, 100);
    begin(fixture, 3, 100);
    want(fixture, 2, 2, memory, 100, 0);
    want(fixture, 3, 3, NULL, 0, OFP_PEEK | OFP_CLAIM);
    assert_completed(fixture, 3, 0);
    lose(fixture, 1, ECONNRESET, false);
    assert_completed(fixture, 1, ECONNRESET);
    assert_completed(fixture, 2, ECONNRESET);
    /* Claimed: its owner is told when it asks. */
    want(fixture, 0, 3, memory, 100, OFP_CLAIM);
    assert_completed(fixture, 3, ECONNRESET);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 0);
}

static void test_discarded_while_it_fills(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_receive *receive = begin(fixture, 1, 100);

    want(fixture, 1, 1, NULL, 0, OFP_PEEK | OFP_DISCARD);
    assert_completed(fixture, 1, 0);
    ofpi_receive_write(receive, 90, "0123456789", 10);
    ofpi_receive_complete(receive, 0, 0);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 0);
}

/* A posted probe is told at once, what it claimed is there when the payload is. */
static void test_claimed_while_it_fills(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_receive *receive;
    char memory[100] = "";

    want(fixture, 1, 1, NULL, 0, OFP_HOLD | OFP_CLAIM);
    receive = begin(fixture, 1, 80);
    assert_completed(fixture, 1, 0);
    want(fixture, 0, 1, memory, 100, OFP_CLAIM);
    assert_quiet(fixture);
    ofpi_receive_write(receive, 0, "late", 5);
    ofpi_receive_complete(receive, 0, 0);
    assert_completed(fixture, 1, 0);
    assert_string_equal(memory, "late");
}

static void test_into_a_buffer_for_many(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[100] = "";
    struct ofp_receive *first, *second;

    want(fixture, 1, 1, memory, 100, OFP_MULTI_RECV);
    first = begin(fixture, 1, 3);
    second = begin(fixture, 1, 3);
    memcpy(second->iov[0].iov_base, "two", 3);
    memcpy(first->iov[0].iov_base, "one", 3);
    ofpi_receive_complete(second, 0, 0);
    ofpi_receive_complete(first, 0, 0);
    assert_int_equal(next_completion(fixture).buffer_offset, 3);
    assert_int_equal(next_completion(fixture).buffer_offset, 0);
    assert_string_equal(memory, "onetwo");
}

static void test_the_endpoint_closes(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[10];

    begin(fixture, 1, 100);
    begin(fixture, 2, 100);
    want(fixture, 2, 2, memory, 10, 0);
    ofpi_receive_context_drain(fixture->context, endpoint_of(fixture), ECANCELED);
    assert_completed(fixture, 2, ECANCELED);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_into_the_posted_buffer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_its_place_in_the_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_whole_before_it_is_wanted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(test_short_messages_in_place_of_announcements, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_stream_breaks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_discarded_while_it_fills, setup, teardown),
        cmocka_unit_test_setup_teardown(test_claimed_while_it_fills, setup, teardown),
        cmocka_unit_test_setup_teardown(test_into_a_buffer_for_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_endpoint_closes, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
