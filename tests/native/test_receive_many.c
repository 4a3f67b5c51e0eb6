/* SPDX-License-Identifier: BSD-3-Clause */
/* Multi-receive buffers, case by case; test_receive_model.c mixes them with everything else. */
#include "receive_fixture.h"

#define ROOM 100

static int setup(void **state) { return receive_fixture_set_up(state, 1000, 16); }

static int post_many(struct receive_fixture *fixture, uint64_t context, uint64_t tag, char *memory)
{
    return post(fixture, (struct posting){.peer = OFP_PEER_ANY,
                                          .tag = tag,
                                          .context = context,
                                          .memory = memory,
                                          .length = ROOM,
                                          .flags = OFP_MULTI_RECV});
}

static void expect(struct receive_fixture *fixture, uint64_t offset, uint64_t length, bool last)
{
    struct ofp_completion completion = next_completion(fixture);

    assert_int_equal(completion.error, 0);
    assert_int_equal(completion.buffer_offset, offset);
    assert_int_equal(completion.length, length);
    assert_int_equal(completion.flags,
                     OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED | (last ? OFP_COMPLETED_MULTI_RECV : 0));
}

static void expect_release(struct receive_fixture *fixture, uint64_t context, int error)
{
    struct ofp_completion completion = next_completion(fixture);

    assert_int_equal(completion.flags, OFP_COMPLETED_MULTI_RECV);
    assert_int_equal(completion.context, context);
    assert_int_equal(completion.error, error);
    assert_int_equal(completion.length, 0);
    assert_quiet(fixture);
}

static void test_messages_are_packed_until_little_room_is_left(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[ROOM], payload[ROOM] = "";

    assert_int_equal(post_many(fixture, 1, 5, memory), 0);
    assert_int_equal(arrive(fixture, 1, 5, "first", 5), 0);
    expect(fixture, 0, 5, false);
    assert_int_equal(arrive(fixture, 2, 5, "", 0), 0);
    expect(fixture, 5, 0, false);
    assert_int_equal(arrive(fixture, 2, 5, "second", 6), 0);
    expect(fixture, 5, 6, false);
    assert_memory_equal(memory, "firstsecond", 11);
    assert_int_equal(statistics_of(fixture).posted_receives, 1);
    /* One byte more than leaves the minimum. */
    assert_int_equal(arrive(fixture, 2, 5, payload, ROOM - 11 - MIN_MULTI_RECV), 0);
    expect(fixture, 11, ROOM - 11 - MIN_MULTI_RECV, false);
    assert_int_equal(arrive(fixture, 2, 5, "x", 1), 0);
    expect(fixture, ROOM - MIN_MULTI_RECV, 1, true);
    assert_int_equal(statistics_of(fixture).posted_receives, 0);
    assert_int_equal(arrive(fixture, 1, 5, "third", 5), 0);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 1);
    assert_quiet(fixture);
}

static void test_a_message_that_does_not_fit_goes_to_the_next_receive(void **state)
{
    struct receive_fixture *fixture = *state;
    char first[ROOM], second[ROOM], payload[ROOM] = "payload";

    assert_int_equal(post_many(fixture, 1, 5, first), 0);
    assert_int_equal(post_many(fixture, 2, 5, second), 0);
    assert_int_equal(arrive(fixture, 1, 5, payload, 10), 0);
    expect(fixture, 0, 10, false);
    assert_int_equal(arrive(fixture, 1, 5, payload, ROOM - 9), 0);
    assert_int_equal(fixture->completions[fixture->completion_next].completion.context, 1);
    assert_int_equal(next_completion(fixture).flags, OFP_COMPLETED_MULTI_RECV);
    assert_int_equal(fixture->completions[fixture->completion_next].completion.context, 2);
    expect(fixture, 0, ROOM - 9, true);
    assert_string_equal(second, "payload");
    assert_quiet(fixture);
}

static void test_a_message_longer_than_the_whole_buffer_is_truncated(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[ROOM + 1] = "", payload[ROOM + 1];
    struct ofp_completion completion;

    memset(payload, 'p', sizeof(payload));
    assert_int_equal(post_many(fixture, 1, 5, memory), 0);
    assert_int_equal(arrive(fixture, 1, 5, payload, ROOM + 1), 0);
    completion = next_completion(fixture);
    assert_int_equal(completion.error, OFP_ETRUNC);
    assert_int_equal(completion.length, ROOM + 1);
    assert_true(completion.flags & OFP_COMPLETED_MULTI_RECV);
    assert_int_equal(memory[ROOM - 1], 'p');
    assert_int_equal(memory[ROOM], 0);
    assert_quiet(fixture);
}

static void test_kept_messages_go_in_first(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[ROOM] = "";

    assert_int_equal(arrive(fixture, 1, 5, "one", 3), 0);
    assert_int_equal(arrive(fixture, 2, 6, "other", 5), 0);
    assert_int_equal(arrive(fixture, 2, 5, "two", 3), 0);
    assert_int_equal(post_many(fixture, 1, 5, memory), 0);
    expect(fixture, 0, 3, false);
    expect(fixture, 3, 3, false);
    assert_string_equal(memory, "onetwo");
    assert_int_equal(statistics_of(fixture).unexpected_messages, 1);
    assert_quiet(fixture);
}

/* A provider that receives at once, and meanwhile hears of another message. */
static void receive_and_hear(struct receive_fixture *fixture, struct ofp_receive *receive)
{
    fixture->on_start = NULL;
    assert_int_equal(arrive(fixture, 1, 5, "new", 3), 0);
    ofpi_receive_write(receive, 0, "old", 3);
    ofpi_receive_complete(receive, 0, 0);
}

static void test_what_arrives_while_kept_messages_go_in_stays_behind_them(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[ROOM] = "";

    assert_int_equal(announce(fixture, 1, 5, 3), 0);
    assert_int_equal(arrive(fixture, 1, 5, "mid", 3), 0);
    fixture->on_start = receive_and_hear;
    assert_int_equal(post_many(fixture, 1, 5, memory), 0);
    expect(fixture, 0, 3, false);
    expect(fixture, 3, 3, false);
    expect(fixture, 6, 3, false);
    assert_string_equal(memory, "oldmidnew");
    assert_quiet(fixture);
}

static void test_announced_messages_are_under_way_side_by_side(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_receive *first, *second;
    char memory[ROOM] = "";

    assert_int_equal(post_many(fixture, 1, 5, memory), 0);
    assert_int_equal(announce(fixture, 1, 5, 20), 0);
    assert_int_equal(announce(fixture, 2, 5, 60), 0);
    first = next_started(fixture);
    second = next_started(fixture);
    assert_ptr_equal(second->iov->iov_base, memory + 20);
    assert_int_equal(second->iov->iov_len, 60);
    assert_int_equal(statistics_of(fixture).posted_receives, 0);
    ofpi_receive_write(second, 0, "second", 6);
    ofpi_receive_complete(second, 0, 0);
    expect(fixture, 20, 60, false);
    ofpi_receive_write(first, 0, "first", 5);
    ofpi_receive_complete(first, 0, 0);
    expect(fixture, 0, 20, true);
    assert_string_equal(memory, "first");
    assert_string_equal(memory + 20, "second");
    assert_quiet(fixture);
}

static void test_cancel_releases_it_when_nothing_is_under_way(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[ROOM] = "";

    assert_int_equal(post_many(fixture, 7, 5, memory), 0);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 7, 0), 0);
    expect_release(fixture, 7, ECANCELED);
    assert_int_equal(post_many(fixture, 8, 5, memory), 0);
    assert_int_equal(announce(fixture, 1, 5, 20), 0);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 8, 0), 0);
    ofpi_receive_complete(next_started(fixture), 0, 0);
    expect(fixture, 0, 20, false);
    expect_release(fixture, 8, ECANCELED);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 8, 0), -ENOENT);
}

static void test_the_end_of_the_endpoint_releases_it(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_completion completion;
    char memory[ROOM] = "";

    assert_int_equal(post_many(fixture, 7, 5, memory), 0);
    assert_int_equal(announce(fixture, 1, 5, 20), 0);
    (void)next_started(fixture);
    ofpi_receive_context_drain(fixture->context, endpoint_of(fixture), ECANCELED);
    completion = next_completion(fixture);
    assert_int_equal(completion.error, ECANCELED);
    assert_int_equal(completion.flags, OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED);
    expect_release(fixture, 7, ECANCELED);
}

static void test_a_lost_message_leaves_the_buffer_posted(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[ROOM] = "";

    assert_int_equal(post_many(fixture, 7, 5, memory), 0);
    assert_int_equal(announce(fixture, 1, 5, 20), 0);
    (void)next_started(fixture);
    lose(fixture, 1, OFP_EPEERLOST, true);
    assert_completed(fixture, 7, OFP_EPEERLOST);
    assert_int_equal(arrive(fixture, 2, 5, "next", 4), 0);
    expect(fixture, 20, 4, false);
    assert_quiet(fixture);
}

static void test_one_piece_of_memory_only(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[ROOM];
    struct ofp_operation op = {.op = OFP_TRECV, .peer = OFP_PEER_ANY, .flags = OFP_MULTI_RECV};
    struct iovec iov[2] = {{memory, 50}, {memory + 50, 50}};
    struct ofp_region *regions[2] = {NULL, NULL};
    struct ofp_transfer transfer = {.op = &op, .iov = iov, .regions = regions, .iov_count = 2, .length = ROOM};

    assert_int_equal(ofpi_receive_post(fixture->context, endpoint_of(fixture), &transfer), -EINVAL);
    assert_quiet(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_are_packed_until_little_room_is_left, setup,
                                        receive_fixture_tear_down),
        cmocka_unit_test_setup_teardown(test_a_message_that_does_not_fit_goes_to_the_next_receive, setup,
                                        receive_fixture_tear_down),
        cmocka_unit_test_setup_teardown(test_a_message_longer_than_the_whole_buffer_is_truncated, setup,
                                        receive_fixture_tear_down),
        cmocka_unit_test_setup_teardown(test_kept_messages_go_in_first, setup, receive_fixture_tear_down),
        cmocka_unit_test_setup_teardown(test_what_arrives_while_kept_messages_go_in_stays_behind_them, setup,
                                        receive_fixture_tear_down),
        cmocka_unit_test_setup_teardown(test_announced_messages_are_under_way_side_by_side, setup,
                                        receive_fixture_tear_down),
        cmocka_unit_test_setup_teardown(test_cancel_releases_it_when_nothing_is_under_way, setup,
                                        receive_fixture_tear_down),
        cmocka_unit_test_setup_teardown(test_the_end_of_the_endpoint_releases_it, setup, receive_fixture_tear_down),
        cmocka_unit_test_setup_teardown(test_a_lost_message_leaves_the_buffer_posted, setup, receive_fixture_tear_down),
        cmocka_unit_test_setup_teardown(test_one_piece_of_memory_only, setup, receive_fixture_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
