/* SPDX-License-Identifier: BSD-3-Clause */
/* Peek, claim, discard, hold, and putting back. */
#include "receive_fixture.h"

static int setup(void **state) { return receive_fixture_set_up(state, 1000 + 4 * 256, 4); }

static int act(struct receive_fixture *fixture, uint64_t flags, uint64_t tag, uint64_t context)
{
    return post(fixture, (struct posting){.peer = 1, .tag = tag, .context = context, .flags = flags});
}

/* Receives the oldest waiting message with this tag and expects its text. */
static void receive_text(struct receive_fixture *fixture, uint64_t tag, const char *text)
{
    char memory[8] = "";

    assert_int_equal(
        post(fixture, (struct posting){.peer = 1, .tag = tag, .context = 99, .memory = memory, .length = 8}), 0);
    assert_completed(fixture, 99, 0);
    assert_string_equal(memory, text);
}

static void claim_text(struct receive_fixture *fixture, uint64_t context, const char *text)
{
    char memory[8] = "";

    assert_int_equal(
        post(fixture,
             (struct posting){.peer = 1, .context = context, .memory = memory, .length = 8, .flags = OFP_CLAIM}),
        0);
    assert_completed(fixture, context & ~OFPI_REQUEST, 0);
    assert_string_equal(memory, text);
}

static void test_combinations_without_a_meaning(void **state)
{
    const uint64_t wrong[] = {OFP_DISCARD,
                              OFP_HOLD,
                              OFP_HOLD | OFP_PEEK,
                              OFP_HOLD | OFP_DISCARD,
                              OFP_MULTI_RECV | OFP_HOLD | OFP_CLAIM,
                              OFP_MULTI_RECV | OFP_PEEK,
                              OFP_MULTI_RECV | OFP_CLAIM,
                              OFP_PEEK | OFP_CLAIM | OFP_DISCARD,
                              OFP_HOLD | OFP_CLAIM | OFP_DISCARD,
                              OFP_HOLD | OFP_CLAIM | OFP_PEEK};
    struct receive_fixture *fixture = *state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(act(fixture, wrong[i], 1, 1), -EINVAL);
    assert_quiet(fixture);
    assert_int_equal(statistics_of(fixture).posted_receives, 0);
}

static void test_peek(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_message message = message_from(fixture, 1, 6, 3);
    struct ofp_completion completion;

    assert_int_equal(act(fixture, OFP_PEEK, 6, 1), 0);
    completion = next_completion(fixture);
    assert_int_equal(completion.error, ENOMSG);
    assert_int_equal(completion.tag, 6);
    assert_int_equal(completion.length, 0);
    assert_int_equal(completion.flags, OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED);
    message.has_data = 1;
    message.data = 5;
    assert_int_equal(ofpi_message_arrived(fixture->context, endpoint_of(fixture), &message, "abc"), 0);
    assert_int_equal(arrive(fixture, 1, 6, "later", 6), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(act(fixture, OFP_PEEK, 6, 1), 0);
        completion = next_completion(fixture);
        assert_int_equal(completion.error, 0);
        assert_int_equal(completion.length, 3);
        assert_int_equal(completion.data, 5);
        assert_int_equal(completion.source, 1);
        assert_int_equal(completion.flags, OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED | OFP_COMPLETED_REMOTE_CQ_DATA);
    }
    receive_text(fixture, 6, "abc");
    receive_text(fixture, 6, "later");
}

static void test_peek_and_claim(void **state)
{
    struct receive_fixture *fixture = *state;

    assert_int_equal(arrive(fixture, 1, 6, "one", 4), 0);
    assert_int_equal(arrive(fixture, 1, 6, "two", 4), 0);
    assert_int_equal(arrive(fixture, 1, 6, "three", 6), 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_CLAIM, 6, 1), 0);
    assert_int_equal(fixture->completions[0].completion.flags,
                     OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED | OFP_COMPLETED_CLAIM);
    assert_completed(fixture, 1, 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_CLAIM | OFPI_REQUEST, 6, 1), 0);
    assert_completed(fixture, 1, 0);
    /* Nobody else sees them, and their context tells them apart, request or not. */
    receive_text(fixture, 6, "three");
    assert_int_equal(act(fixture, OFP_PEEK, 6, 2), 0);
    assert_completed(fixture, 2, ENOMSG);
    assert_int_equal(act(fixture, OFP_CLAIM, 6, 2), -ENOENT);
    assert_int_equal(post_at(fixture, &fixture->endpoints[1].base, (struct posting){.context = 1, .flags = OFP_CLAIM}),
                     -ENOENT);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 2);
    claim_text(fixture, 1, "one");
    assert_int_equal(act(fixture, OFP_CLAIM, 6, 1), -ENOENT);
    assert_int_equal(act(fixture, OFP_CLAIM | OFP_DISCARD | OFPI_REQUEST, 6, 1), 0);
    assert_completed(fixture, 1, 0);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 0);
    assert_int_equal(statistics_of(fixture).unexpected_bytes, 0);
}

static void test_claims_under_one_context_come_in_order(void **state)
{
    struct receive_fixture *fixture = *state;

    assert_int_equal(arrive(fixture, 1, 6, "one", 4), 0);
    assert_int_equal(arrive(fixture, 1, 6, "two", 4), 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_CLAIM, 6, 1), 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_CLAIM, 6, 1), 0);
    assert_completed(fixture, 1, 0);
    assert_completed(fixture, 1, 0);
    claim_text(fixture, 1, "one");
    claim_text(fixture, 1, "two");
}

static void test_discard(void **state)
{
    struct receive_fixture *fixture = *state;
    char payload[200] = "";

    assert_int_equal(act(fixture, OFP_PEEK | OFP_DISCARD, 6, 1), 0);
    assert_completed(fixture, 1, ENOMSG);
    assert_int_equal(arrive(fixture, 1, 6, payload, 200), 0);
    assert_int_equal(arrive(fixture, 1, 6, "two", 4), 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_DISCARD, 6, 1), 0);
    assert_int_equal(fixture->completions[1].completion.length, 200);
    assert_completed(fixture, 1, 0);
    assert_int_equal(statistics_of(fixture).unexpected_bytes, 4);
    receive_text(fixture, 6, "two");
}

static void test_discarding_an_announced_message_tells_the_sender_only(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_receive *receive;
    struct ofp_message message;

    assert_int_equal(announce(fixture, 1, 6, 500), 0);
    assert_int_equal(announce(fixture, 1, 7, 500), 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_DISCARD, 6, 1), 0);
    assert_completed(fixture, 1, 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_CLAIM, 7, 2), 0);
    assert_completed(fixture, 2, 0);
    assert_int_equal(act(fixture, OFP_CLAIM | OFP_DISCARD, 0, 2), 0);
    assert_completed(fixture, 2, 0);
    for (uint64_t tag = 6; tag <= 7; tag++) {
        receive = next_started(fixture);
        message = receive->message;
        assert_int_equal(receive->length, 0);
        assert_int_equal(message.length, 500);
        assert_int_equal(message.provider_data[0], tag + 1000);
        assert_ptr_equal(ofpi_receive_find(&fixture->peers[1].base, receive->id), receive);
        ofpi_receive_write(receive, 0, "x", 1);
        ofpi_receive_complete(receive, 0, 0);
        assert_int_equal(fixture->completion_next, fixture->completion_count);
    }
    assert_int_equal(statistics_of(fixture).announced_messages, 0);
    /* One that is still under way when its peer goes ends as quietly. */
    assert_int_equal(announce(fixture, 1, 8, 500), 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_DISCARD, 8, 3), 0);
    assert_completed(fixture, 3, 0);
    assert_non_null(next_started(fixture));
    lose(fixture, 1, EIO, true);
    assert_quiet(fixture);
}

static void test_hold_sets_the_message_aside(void **state)
{
    const uint64_t hold = OFP_HOLD | OFP_CLAIM;
    struct receive_fixture *fixture = *state;
    struct ofp_completion completion;
    char memory[8] = "";

    /* Posted before the message, in its place among other receives. */
    assert_int_equal(act(fixture, hold, 6, 1), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 6, .context = 2, .memory = memory, .length = 8}),
                     0);
    assert_quiet(fixture);
    assert_int_equal(arrive(fixture, 1, 6, "held", 5), 0);
    completion = next_completion(fixture);
    assert_int_equal(completion.context, 1);
    assert_int_equal(completion.length, 5);
    assert_int_equal(completion.flags, OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED | OFP_COMPLETED_CLAIM);
    assert_int_equal(arrive(fixture, 1, 6, "next", 5), 0);
    assert_completed(fixture, 2, 0);
    assert_string_equal(memory, "next");
    claim_text(fixture, 1, "held");
    /* Posted after it. */
    assert_int_equal(arrive(fixture, 1, 6, "early", 6), 0);
    assert_int_equal(act(fixture, hold, 6, 3), 0);
    assert_completed(fixture, 3, 0);
    claim_text(fixture, 3, "early");
    /* Cancelled. */
    assert_int_equal(act(fixture, hold, 6, 4), 0);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 4, 0), 0);
    assert_completed(fixture, 4, ECANCELED);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 1, 0), -ENOENT);
}

static void test_hold_of_announced_messages(void **state)
{
    const uint64_t hold = OFP_HOLD | OFP_CLAIM;
    struct receive_fixture *fixture = *state;
    char memory[8] = "", payload[900] = "";

    assert_int_equal(act(fixture, hold, 6, 1), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(announce(fixture, 2, 0, 500), 0);
    assert_int_equal(announce(fixture, 2, 0, 500), -ENOBUFS);
    /* A receive waits for this one: the bound on the number does not hold it up. */
    assert_int_equal(announce(fixture, 1, 6, 4), 0);
    assert_completed(fixture, 1, 0);
    assert_quiet(fixture);
    assert_int_equal(
        post(fixture, (struct posting){.peer = 1, .context = 1, .memory = memory, .length = 8, .flags = OFP_CLAIM}), 0);
    ofpi_receive_write(fixture->started[0], 0, "late", 4);
    ofpi_receive_complete(next_started(fixture), 0, 0);
    assert_completed(fixture, 1, 0);
    assert_string_equal(memory, "late");
    /* That on payload does: the message comes as an announcement then, and the receive is still there for it. */
    assert_int_equal(arrive(fixture, 2, 0, payload, 900), 0);
    assert_int_equal(act(fixture, hold, 6, 2), 0);
    assert_int_equal(arrive(fixture, 1, 6, payload, 900), -EAGAIN);
    assert_quiet(fixture);
    assert_int_equal(announce(fixture, 1, 6, 900), 0);
    assert_completed(fixture, 2, 0);
}

static void test_unclaim_to_its_old_place(void **state)
{
    struct receive_fixture *fixture = *state;
    const char *texts[] = {"a", "b", "c", "d"};

    for (int i = 0; i < 4; i++)
        assert_int_equal(arrive(fixture, 1, 6, texts[i], 2), 0);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(act(fixture, OFP_PEEK | OFP_CLAIM | (i == 1 ? OFPI_REQUEST : 0), 6, i), 0);
        assert_completed(fixture, i, 0);
    }
    /* Two classes are new while they are away, so they have to enter indices that they never were in. */
    assert_int_equal(post(fixture, (struct posting){.peer = OFP_PEER_ANY, .tag = 9, .ignore = 1, .flags = OFP_PEEK}),
                     0);
    assert_completed(fixture, 0, ENOMSG);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 9, .ignore = 2, .flags = OFP_PEEK}), 0);
    assert_completed(fixture, 0, ENOMSG);
    assert_int_equal(ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), 7, NULL), -ENOENT);
    assert_int_equal(ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), 1, NULL), 0);
    assert_int_equal(ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), 1, NULL), -ENOENT);
    assert_int_equal(ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), 0, NULL), 0);
    assert_quiet(fixture);
    receive_text(fixture, 6, "a");
    assert_int_equal(ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), 2, NULL), 0);
    for (int i = 1; i < 4; i++) {
        char memory[2] = "";
        struct posting posting = {.peer = 1, .tag = 4, .ignore = 2, .memory = memory, .length = 2};

        assert_int_equal(post(fixture, posting), 0);
        assert_completed(fixture, 0, 0);
        assert_string_equal(memory, texts[i]);
    }
}

static void test_unclaim_to_a_posted_receive(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[8] = "";

    assert_int_equal(arrive(fixture, 1, 6, "a", 2), 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_CLAIM, 6, 1), 0);
    assert_completed(fixture, 1, 0);
    assert_int_equal(act(fixture, OFP_HOLD | OFP_CLAIM, 6, 2), 0);
    assert_int_equal(
        post(fixture, (struct posting){.peer = OFP_PEER_ANY, .tag = 6, .context = 3, .memory = memory, .length = 8}),
        0);
    assert_quiet(fixture);
    /* The older of the two holds it in its turn. */
    assert_int_equal(ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), 1, NULL), 0);
    assert_completed(fixture, 2, 0);
    assert_quiet(fixture);
    assert_int_equal(ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), 2, NULL), 0);
    assert_completed(fixture, 3, 0);
    assert_string_equal(memory, "a");
    assert_int_equal(statistics_of(fixture).posted_receives, 0);
    /* The same with an announced one. */
    assert_int_equal(announce(fixture, 1, 6, 4), 0);
    assert_int_equal(act(fixture, OFP_PEEK | OFP_CLAIM, 6, 4), 0);
    assert_completed(fixture, 4, 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 6, .context = 5, .memory = memory, .length = 8}),
                     0);
    assert_quiet(fixture);
    assert_int_equal(ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), 4, NULL), 0);
    ofpi_receive_complete(next_started(fixture), 0, 0);
    assert_completed(fixture, 5, 0);
}

static void test_claimed_message_whose_sender_is_gone(void **state)
{
    struct receive_fixture *fixture = *state;

    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(announce(fixture, 1, 6, 500), 0);
        assert_int_equal(act(fixture, OFP_PEEK | OFP_CLAIM, 6, i), 0);
        assert_completed(fixture, i, 0);
    }
    lose(fixture, 1, OFP_EPEERLOST, true);
    assert_quiet(fixture);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 3);
    assert_int_equal(act(fixture, OFP_CLAIM, 0, 0), 0);
    assert_int_equal(fixture->completions[fixture->completion_next].completion.source, 1);
    assert_completed(fixture, 0, OFP_EPEERLOST);
    assert_int_equal(act(fixture, OFP_CLAIM | OFP_DISCARD, 0, 1), 0);
    assert_completed(fixture, 1, 0);
    assert_int_equal(ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), 2, NULL), 0);
    assert_quiet(fixture);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 0);
}

int main(void)
{
#define FLAG_TEST(function) cmocka_unit_test_setup_teardown(function, setup, receive_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        FLAG_TEST(test_combinations_without_a_meaning),
        FLAG_TEST(test_peek),
        FLAG_TEST(test_peek_and_claim),
        FLAG_TEST(test_claims_under_one_context_come_in_order),
        FLAG_TEST(test_discard),
        FLAG_TEST(test_discarding_an_announced_message_tells_the_sender_only),
        FLAG_TEST(test_hold_sets_the_message_aside),
        FLAG_TEST(test_hold_of_announced_messages),
        FLAG_TEST(test_unclaim_to_its_old_place),
        FLAG_TEST(test_unclaim_to_a_posted_receive),
        FLAG_TEST(test_claimed_message_whose_sender_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
