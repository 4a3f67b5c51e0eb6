/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receive a message meets, and which message a receive. */
#include "receive_fixture.h"

static int setup(void **state) { return receive_fixture_set_up(state, 1 << 20, 1000); }

static void test_expected_message_fills_every_field(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[8] = "";
    struct ofp_message message = message_from(fixture, 2, 77, 5);
    struct recorded record;

    message.has_data = 1;
    message.data = 0xfeed;
    assert_int_equal(post(fixture, (struct posting){.peer = 2,
                                                    .tag = 77,
                                                    .context = 9,
                                                    .flags = OFP_COMPLETION,
                                                    .memory = memory,
                                                    .length = sizeof(memory)}),
                     0);
    assert_quiet(fixture);
    assert_int_equal(statistics_of(fixture).posted_receives, 1);
    assert_int_equal(ofpi_message_arrived(fixture->context, endpoint_of(fixture), &message, "hello"), 0);
    record = next_record(fixture);
    assert_ptr_equal(record.endpoint, endpoint_of(fixture));
    assert_int_equal(record.op_flags, OFP_COMPLETION);
    assert_int_equal(record.completion.context, 9);
    assert_int_equal(record.completion.flags, OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED | OFP_COMPLETED_REMOTE_CQ_DATA);
    assert_int_equal(record.completion.length, 5);
    assert_int_equal(record.completion.data, 0xfeed);
    assert_int_equal(record.completion.tag, 77);
    assert_int_equal(record.completion.source, 2);
    assert_int_equal(record.completion.error, 0);
    assert_string_equal(memory, "hello");
    assert_int_equal(statistics_of(fixture).posted_receives, 0);
    assert_quiet(fixture);
}

static void test_channels_are_apart_and_messages_have_no_tag(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[4] = "";
    struct ofp_message message = message_from(fixture, 1, 55, 2);
    struct ofp_completion completion;

    message.channel = OFP_CHANNEL_MESSAGE;
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 55, .context = 1}), 0);
    assert_int_equal(
        post(fixture,
             (struct posting){
                 .peer = 1, .tag = 3, .ignore = 4, .context = 2, .untagged = true, .memory = memory, .length = 4}),
        0);
    assert_int_equal(ofpi_message_arrived(fixture->context, endpoint_of(fixture), &message, "ab"), 0);
    completion = next_completion(fixture);
    assert_int_equal(completion.context, 2);
    assert_int_equal(completion.flags, OFP_COMPLETED_RECV | OFP_COMPLETED_MSG);
    assert_int_equal(completion.tag, 0);
    assert_string_equal(memory, "ab");
    /* The other way round: an untagged message waits, and a tagged receive does not see it. */
    assert_int_equal(ofpi_message_arrived(fixture->context, endpoint_of(fixture), &message, "cd"), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = OFP_PEER_ANY, .ignore = UINT64_MAX, .context = 3}), 0);
    assert_quiet(fixture);
    assert_int_equal(
        post(fixture,
             (struct posting){.peer = OFP_PEER_ANY, .context = 4, .untagged = true, .memory = memory, .length = 4}),
        0);
    assert_completed(fixture, 4, 0);
    assert_string_equal(memory, "cd");
}

/* Four receives that all match the same message, posted in each of the 24 orders: the order of posting decides. */
static void test_posted_first_wins_over_any_mix_of_classes(void **state)
{
    const struct posting kinds[4] = {
        {.peer = 1, .tag = 0x12, .context = 0},
        {.peer = OFP_PEER_ANY, .tag = 0x12, .context = 1},
        {.peer = 1, .tag = 0x1f, .ignore = 0x0f, .context = 2},
        {.peer = OFP_PEER_ANY, .tag = 0xff, .ignore = 0xff, .context = 3},
    };
    struct receive_fixture *fixture = *state;

    for (int code = 0; code < 256; code++) {
        int order[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};

        if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15)
            continue;
        fixture->completion_count = fixture->completion_next = 0;
        for (int i = 0; i < 4; i++)
            assert_int_equal(post(fixture, kinds[order[i]]), 0);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(arrive(fixture, 1, 0x12, NULL, 0), 0);
            assert_completed(fixture, (uint64_t)order[i], 0);
        }
        assert_quiet(fixture);
    }
}

static void test_receives_that_do_not_match(void **state)
{
    struct receive_fixture *fixture = *state;

    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 5, .context = 1}), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = OFP_PEER_ANY, .tag = 6, .context = 2}), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 0x10, .ignore = 0x0f, .context = 3}), 0);
    assert_int_equal(arrive(fixture, 2, 5, NULL, 0), 0);
    assert_int_equal(arrive(fixture, 1, 7, NULL, 0), 0);
    assert_int_equal(arrive(fixture, 1, 0x20, NULL, 0), 0);
    assert_int_equal(arrive(fixture, 2, 0x11, NULL, 0), 0);
    assert_quiet(fixture);
    assert_int_equal(statistics_of(fixture).posted_receives, 3);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 4);
}

static void test_arrived_first_wins_for_every_class(void **state)
{
    const struct posting kinds[4] = {
        {.peer = 1, .tag = 0x12},
        {.peer = OFP_PEER_ANY, .tag = 0x12},
        {.peer = 1, .tag = 0x10, .ignore = 0x0f},
        {.peer = OFP_PEER_ANY, .ignore = UINT64_MAX},
    };
    /* Which of the five messages below each kind receives, in order. */
    const char *expected[4] = {"bd", "abd", "bcd", "abcde"};
    struct receive_fixture *fixture = *state;
    char memory;

    for (int kind = 0; kind < 4; kind++) {
        struct posting posting = kinds[kind];

        fixture->completion_count = fixture->completion_next = 0;
        assert_int_equal(arrive(fixture, 2, 0x12, "a", 1), 0);
        assert_int_equal(arrive(fixture, 1, 0x12, "b", 1), 0);
        assert_int_equal(arrive(fixture, 1, 0x13, "c", 1), 0);
        assert_int_equal(arrive(fixture, 1, 0x12, "d", 1), 0);
        assert_int_equal(arrive(fixture, 3, 0x33, "e", 1), 0);
        posting.memory = &memory;
        posting.length = 1;
        for (const char *letter = expected[kind]; *letter; letter++) {
            assert_int_equal(post(fixture, posting), 0);
            assert_int_equal(next_completion(fixture).error, 0);
            assert_int_equal(memory, *letter);
        }
        ofpi_receive_context_drain(fixture->context, endpoint_of(fixture), ECANCELED);
    }
    assert_int_equal(statistics_of(fixture).linear_searches, 0);
}

static void test_masks_beyond_the_indexed_ones_are_searched(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory;
    uint64_t masks = 40;

    assert_int_equal(arrive(fixture, 1, 0, "z", 1), 0);
    for (uint64_t i = 0; i < masks; i++) {
        fixture->completion_count = fixture->completion_next = 0;
        assert_int_equal(arrive(fixture, 1, 1ull << i, "a", 1), 0);
        assert_int_equal(arrive(fixture, 1, 3ull << i, "b", 1), 0);
        /* Tag 3 << i or 2 << i, any source: the second message. */
        assert_int_equal(post(fixture, (struct posting){.peer = OFP_PEER_ANY,
                                                        .tag = 2ull << i,
                                                        .ignore = 1ull << i,
                                                        .context = i,
                                                        .memory = &memory,
                                                        .length = 1}),
                         0);
        assert_completed(fixture, i, 0);
        assert_int_equal(memory, 'b');
        assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 1ull << i, .memory = &memory, .length = 1}),
                         0);
        assert_int_equal(next_completion(fixture).error, 0);
        assert_int_equal(memory, 'a');
    }
    /* One class is the exact one, fifteen masks have an index. */
    assert_int_equal(statistics_of(fixture).linear_searches, masks - 15);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 1);
}

static void test_many_masks_of_posted_receives(void **state)
{
    struct receive_fixture *fixture = *state;

    for (int round = 0; round < 3; round++) {
        /* All at once, then one after another. */
        for (uint64_t i = 0; i < 60; i++)
            assert_int_equal(
                post(fixture, (struct posting){.peer = 1, .tag = 1ull << 60, .ignore = 1ull << i, .context = i}), 0);
        fixture->completion_count = fixture->completion_next = 0;
        for (uint64_t i = 0; i < 60; i++) {
            assert_int_equal(arrive(fixture, 1, 1ull << 60 | 1ull << i, NULL, 0), 0);
            assert_completed(fixture, i, 0);
        }
        for (uint64_t i = 0; i < 60; i++) {
            fixture->completion_count = fixture->completion_next = 0;
            assert_int_equal(
                post(fixture,
                     (struct posting){.peer = OFP_PEER_ANY, .tag = i << 32, .ignore = (i << 5) + 1, .context = i}),
                0);
            assert_int_equal(arrive(fixture, 2, i << 32 | 1, NULL, 0), 0);
            assert_completed(fixture, i, 0);
        }
    }
    assert_quiet(fixture);
}

int main(void)
{
#define MATCH_TEST(function) cmocka_unit_test_setup_teardown(function, setup, receive_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        MATCH_TEST(test_expected_message_fills_every_field),
        MATCH_TEST(test_channels_are_apart_and_messages_have_no_tag),
        MATCH_TEST(test_posted_first_wins_over_any_mix_of_classes),
        MATCH_TEST(test_receives_that_do_not_match),
        MATCH_TEST(test_arrived_first_wins_for_every_class),
        MATCH_TEST(test_masks_beyond_the_indexed_ones_are_searched),
        MATCH_TEST(test_many_masks_of_posted_receives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
