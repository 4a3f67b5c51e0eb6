/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying, announced messages, bounds, cancelling and ends. Matching and the flags have files of their own. */
#include "receive_fixture.h"

#include <time.h>

static int setup(void **state) { return receive_fixture_set_up(state, 1 << 20, 1000); }

static void fill(char *memory, size_t length)
{
    for (size_t i = 0; i < length; i++)
        memory[i] = (char)(i * 7 + 1);
}

/* --------------------------------------------------------------------------------------------------------- copying */

static void test_unexpected_payloads_of_every_storage(void **state)
{
    const uint64_t lengths[] = {0, 1, 8, 64, 65, 256, 257, 5000};
    struct receive_fixture *fixture = *state;
    char payload[5008], memory[5000];
    uint64_t total = 0;

    fill(payload, sizeof(payload));
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 8; i++) {
            assert_int_equal(arrive(fixture, 1, i, lengths[i] ? payload + i : NULL, lengths[i]), 0);
            total += lengths[i];
        }
        assert_int_equal(statistics_of(fixture).unexpected_bytes, total);
        for (uint64_t i = 8; i-- > 0;) {
            memset(memory, 0, sizeof(memory));
            assert_int_equal(
                post(fixture,
                     (struct posting){.peer = 1, .tag = i, .context = i, .memory = memory, .length = sizeof(memory)}),
                0);
            assert_completed(fixture, i, 0);
            assert_memory_equal(memory, payload + i, lengths[i]);
            total -= lengths[i];
            assert_int_equal(statistics_of(fixture).unexpected_bytes, total);
        }
    }
}

static void test_truncation(void **state)
{
    struct receive_fixture *fixture = *state;
    struct posting posting = {.peer = 1, .tag = 1, .length = 4};
    char memory[8];
    struct ofp_completion completion;

    posting.memory = memory;
    for (int unexpected = 0; unexpected < 2; unexpected++) {
        memset(memory, '-', sizeof(memory));
        if (!unexpected)
            assert_int_equal(post(fixture, posting), 0);
        assert_int_equal(arrive(fixture, 1, 1, "abcdefg", 7), 0);
        if (unexpected)
            assert_int_equal(post(fixture, posting), 0);
        completion = next_completion(fixture);
        assert_int_equal(completion.error, OFP_ETRUNC);
        assert_int_equal(completion.length, 7);
        assert_memory_equal(memory, "abcd----", 8);
    }
    assert_int_equal(announce(fixture, 1, 1, 1000), 0);
    assert_int_equal(post(fixture, posting), 0);
    assert_int_equal(fixture->started[0]->length, 4);
    ofpi_receive_complete(next_started(fixture), 0, 0);
    completion = next_completion(fixture);
    assert_int_equal(completion.error, OFP_ETRUNC);
    assert_int_equal(completion.length, 1000);
}

static struct ofp_transfer scattered(const struct ofp_operation *op, const struct iovec *iov,
                                     struct ofp_region *const *regions, uint32_t count)
{
    struct ofp_transfer transfer = {.op = op, .iov = iov, .regions = regions, .iov_count = count};

    for (uint32_t i = 0; i < count; i++)
        transfer.length += iov[i].iov_len;
    return transfer;
}

static void test_scattering_and_region_holds(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofpi_region regions[2] = {0};
    struct ofp_region *held[OFP_SEGMENT_LIMIT + 1] = {&regions[0].base, NULL, &regions[1].base, &regions[0].base};
    char memory[16];
    struct iovec iov[OFP_SEGMENT_LIMIT + 1] = {{memory, 2}, {memory + 4, 0}, {memory + 6, 3}, {memory + 10, 4}};
    struct ofp_operation op = {.op = OFP_TRECV, .peer = 1, .tag = 1};
    struct ofp_transfer transfer = scattered(&op, iov, held, 4);
    struct ofp_receive *receive;

    memset(memory, '-', sizeof(memory));
    assert_int_equal(ofpi_receive_post(fixture->context, endpoint_of(fixture), &transfer), 0);
    memset(iov, 0, sizeof(iov)); /* the record is copied */
    assert_int_equal(regions[0].uses, 2);
    assert_int_equal(regions[1].uses, 1);
    assert_int_equal(arrive(fixture, 1, 1, "abcdefg", 7), 0);
    assert_memory_equal(memory, "ab----cde-fg----", 16);
    assert_int_equal(next_completion(fixture).error, 0);
    assert_int_equal(regions[0].uses + regions[1].uses, 0);

    /* The same for an announced message whose payload comes in pieces, and past the end. */
    iov[0] = (struct iovec){memory, 2};
    iov[1] = (struct iovec){memory + 8, 3};
    transfer = scattered(&op, iov, held, 2);
    memset(memory, '-', sizeof(memory));
    assert_int_equal(announce(fixture, 1, 1, 100), 0);
    assert_int_equal(ofpi_receive_post(fixture->context, endpoint_of(fixture), &transfer), 0);
    assert_int_equal(regions[0].uses, 1);
    receive = next_started(fixture);
    assert_int_equal(receive->length, 5);
    assert_int_equal(receive->iov_count, 2);
    assert_int_equal(receive->iov[1].iov_len, 3);
    ofpi_receive_write(receive, 3, "yz!!", 4);
    ofpi_receive_write(receive, 0, "vwx", 3);
    ofpi_receive_write(receive, 5, "!", 1);
    ofpi_receive_write(receive, UINT64_MAX, "!", 1);
    assert_memory_equal(memory, "vw------xyz-----", 16);
    ofpi_receive_complete(receive, EIO, 17);
    assert_int_equal(regions[0].uses, 0);
    assert_int_equal(fixture->completions[fixture->completion_next].completion.provider_error, 17);
    assert_completed(fixture, 0, EIO);

    transfer = scattered(&op, iov, held, OFP_SEGMENT_LIMIT + 1);
    assert_int_equal(ofpi_receive_post(fixture->context, endpoint_of(fixture), &transfer), -EINVAL);
    transfer = scattered(&op, iov, held, 1);
    assert_int_equal(ofpi_receive_post(fixture->context, endpoint_of(fixture), &transfer), 0);
    assert_int_equal(regions[0].uses, 1);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 0, 0), 0);
    assert_int_equal(regions[0].uses, 0);
}

/* ---------------------------------------------------------------------------------------------- announced messages */

static void test_announced_message_is_lent_until_complete(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[8] = "";
    struct ofp_receive *receive;
    uint64_t id;

    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 4, .context = 3, .memory = memory, .length = 8}),
                     0);
    assert_int_equal(announce(fixture, 1, 4, 6), 0);
    receive = next_started(fixture);
    id = receive->id;
    assert_int_not_equal(id, 0);
    assert_int_equal(receive->length, 6);
    assert_int_equal(receive->message.provider_data[0], 1004);
    assert_int_equal(receive->message.provider_data[5], 6);
    assert_int_equal(receive->provider_data[0], 0);
    assert_ptr_equal(ofpi_receive_find(&fixture->peers[1].base, id), receive);
    assert_null(ofpi_receive_find(&fixture->peers[2].base, id));
    assert_null(ofpi_receive_find(&fixture->peers[1].base, id + 1));
    assert_null(ofpi_receive_find(&fixture->peers[1].base, 0));
    ofpi_receive_write(receive, 0, "abcdef", 6);
    assert_quiet(fixture);
    ofpi_receive_complete(receive, 0, 0);
    assert_completed(fixture, 3, 0);
    assert_string_equal(memory, "abcdef");
    assert_null(ofpi_receive_find(&fixture->peers[1].base, id));
}

static void complete_at_once(struct receive_fixture *fixture, struct ofp_receive *receive)
{
    (void)fixture;
    ofpi_receive_write(receive, 0, "now", receive->length);
    ofpi_receive_complete(receive, 0, 0);
}

static void test_provider_may_complete_or_lose_the_peer_within_the_call(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[4] = "";

    fixture->on_start = complete_at_once;
    assert_int_equal(announce(fixture, 1, 4, 3), 0);
    assert_int_equal(statistics_of(fixture).announced_messages, 1);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 4, .context = 3, .memory = memory, .length = 4}),
                     0);
    assert_completed(fixture, 3, 0);
    assert_string_equal(memory, "now");
    assert_int_equal(statistics_of(fixture).announced_messages, 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 4, .context = 5, .memory = memory, .length = 4}),
                     0);
    assert_int_equal(announce(fixture, 1, 4, 3), 0);
    assert_completed(fixture, 5, 0);
    assert_quiet(fixture);
}

static void lose_peer_at_once(struct receive_fixture *fixture, struct ofp_receive *receive)
{
    lose(fixture, receive->message.source, ESRCH, true);
}

static void test_peer_found_dead_by_the_provider(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[4];

    fixture->on_start = lose_peer_at_once;
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 9, .context = 1}), 0);
    assert_int_equal(announce(fixture, 1, 4, 3), 0);
    assert_int_equal(announce(fixture, 1, 5, 3), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 4, .context = 2, .memory = memory, .length = 4}),
                     0);
    assert_completed(fixture, 2, ESRCH);
    assert_completed(fixture, 1, OFP_EPEERLOST);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 0);
    assert_quiet(fixture);
}

/* ---------------------------------------------------------------------------------------------------------- bounds */

#define ENTRY 256 /* what a message takes beside payload of more than 64 bytes */

static void test_bound_on_memory(void **state)
{
    struct receive_fixture *fixture = *state;
    enum { LIMIT = 1000 + 2 * ENTRY };
    char payload[LIMIT], memory[600];

    fill(payload, sizeof(payload));
    receive_fixture_close(fixture);
    receive_fixture_open(fixture, LIMIT, 4);
    /* Too long by itself: refused, and no reason to throttle. */
    assert_int_equal(arrive(fixture, 1, 1, payload, LIMIT - ENTRY + 1), -EAGAIN);
    assert_int_equal(arrive(fixture, 1, 1, NULL, UINT64_MAX), -EAGAIN);
    assert_false(ofpi_receive_context_is_announce_only(fixture->context));
    assert_int_equal(arrive(fixture, 1, 1, payload, 600), 0);
    assert_false(ofpi_receive_context_is_announce_only(fixture->context));
    assert_int_equal(arrive(fixture, 1, 1, payload, 401), -EAGAIN);
    assert_true(ofpi_receive_context_is_announce_only(fixture->context));
    assert_int_equal(arrive(fixture, 1, 2, payload, 400), 0);
    assert_int_equal(statistics_of(fixture).unexpected_bytes, 1000);
    /* Not even an empty one has room now, unless a receive claims it. */
    assert_int_equal(arrive(fixture, 1, 3, payload, 0), -EAGAIN);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 4, .context = 9, .flags = OFP_HOLD | OFP_CLAIM}),
                     0);
    assert_int_equal(arrive(fixture, 1, 4, payload, 8), 0);
    assert_completed(fixture, 9, 0);
    /* What matches is never refused. */
    assert_int_equal(post(fixture, (struct posting){.peer = 2, .memory = memory, .length = 600}), 0);
    assert_int_equal(arrive(fixture, 2, 0, payload, 600), 0);
    assert_int_equal(next_completion(fixture).error, 0);
    /* Above half of the bound it stays, below it ends. */
    assert_int_equal(post(fixture, (struct posting){.flags = OFP_CLAIM, .context = 9, .memory = memory, .length = 8}),
                     0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 2, .memory = memory, .length = 600}), 0);
    assert_true(ofpi_receive_context_is_announce_only(fixture->context));
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 1, .memory = memory, .length = 600}), 0);
    assert_memory_equal(memory, payload, 600);
    assert_false(ofpi_receive_context_is_announce_only(fixture->context));
}

/* A flood of the shortest messages is bounded like any other, and in both kinds together. */
static void test_every_message_counts(void **state)
{
    struct receive_fixture *fixture = *state;
    uint64_t kept = 0, announced = 0;

    receive_fixture_close(fixture);
    receive_fixture_open(fixture, 100 * ENTRY, 50);
    while (arrive(fixture, 1, kept % 2, "x", 1) == 0)
        kept++;
    assert_int_equal(kept, 100);
    while (announce(fixture, 1, 3, 1) == 0)
        announced++;
    assert_int_equal(announced, 50);
    assert_int_equal(arrive(fixture, 2, 1, NULL, 0), -EAGAIN);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 150);
    assert_int_equal(statistics_of(fixture).announced_messages, 50);
    /* Each kind has its own bound. */
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 1}), 0);
    assert_int_equal(announce(fixture, 1, 3, 1), -ENOBUFS);
    assert_int_equal(arrive(fixture, 2, 1, NULL, 0), 0);
}

/* -------------------------------------------------------------------------------------------------- cancel and end */

static void test_cancel_takes_the_newest(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_completion completion;

    for (uint64_t tag = 1; tag <= 3; tag++)
        assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = tag, .context = 8}), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 2, .tag = 4, .context = 8, .flags = OFPI_REQUEST}), 0);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 9, 0), -ENOENT);
    assert_int_equal(ofpi_receive_cancel(fixture->context, &fixture->endpoints[1].base, 8, 0), -ENOENT);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 8, 0), 0);
    completion = next_completion(fixture);
    assert_int_equal(completion.error, ECANCELED);
    assert_int_equal(completion.context, 8);
    assert_int_equal(completion.tag, 3);
    assert_int_equal(completion.source, 1);
    assert_int_equal(completion.flags, OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 8, OFPI_REQUEST), 0);
    assert_int_equal(next_completion(fixture).source, 2);
    assert_int_equal(ofpi_receive_cancel(fixture->context, endpoint_of(fixture), 8, OFPI_REQUEST), -ENOENT);
    assert_int_equal(arrive(fixture, 1, 3, NULL, 0), 0);
    assert_quiet(fixture);
    assert_int_equal(arrive(fixture, 1, 2, NULL, 0), 0);
    assert_completed(fixture, 8, 0);
}

static void test_lost_peer(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[8];
    struct posting mine = {.peer = 1, .tag = 1, .context = 1, .memory = memory, .length = 8};
    uint64_t id;

    assert_int_equal(post(fixture, mine), 0);
    assert_int_equal(announce(fixture, 1, 1, 8), 0);
    id = next_started(fixture)->id;
    assert_int_equal(announce(fixture, 1, 2, 8), 0);
    assert_int_equal(announce(fixture, 2, 2, 8), 0);
    assert_int_equal(arrive(fixture, 1, 3, "whole", 6), 0);
    mine.tag = 10;
    mine.context = 10;
    assert_int_equal(post(fixture, mine), 0);
    mine.ignore = 1;
    mine.context = 11;
    assert_int_equal(post(fixture, mine), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = OFP_PEER_ANY, .tag = 12, .context = 12}), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 2, .tag = 13, .context = 13}), 0);

    lose(fixture, 1, ECONNRESET, false);
    assert_completed(fixture, 1, ECONNRESET);
    assert_quiet(fixture);
    assert_null(ofpi_receive_find(&fixture->peers[1].base, id));
    assert_int_equal(statistics_of(fixture).announced_messages, 1);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 2);
    assert_int_equal(statistics_of(fixture).posted_receives, 4);

    lose(fixture, 1, OFP_EPEERLOST, true);
    assert_int_equal(fixture->completions[fixture->completion_next].completion.source, 1);
    assert_completed(fixture, 10, OFP_EPEERLOST);
    assert_completed(fixture, 11, OFP_EPEERLOST);
    assert_quiet(fixture);
    mine = (struct posting){.peer = 1, .tag = 3, .memory = memory, .length = 8};
    assert_int_equal(post(fixture, mine), 0);
    assert_string_equal(memory, "whole");
}

/* Nanoseconds of this thread that it takes to lose a peer of whom three announcements wait; the least of several times. */
static uint64_t time_of_a_loss(struct receive_fixture *fixture)
{
    uint64_t least = UINT64_MAX;

    for (int round = 0; round < 20; round++) {
        struct timespec begin, end;
        uint64_t time;

        for (uint64_t tag = 0; tag < 3; tag++)
            assert_int_equal(announce(fixture, 1, tag, 100), 0);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        lose(fixture, 1, ECONNRESET, false);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        time = (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec;
        least = time < least ? time : least;
    }
    return least;
}

static void test_losing_a_peer_costs_by_its_own_messages(void **state)
{
    struct receive_fixture *fixture = *state;
    enum { OTHERS = 100000 };
    uint64_t alone, among_others;

    receive_fixture_close(fixture);
    receive_fixture_open(fixture, UINT64_MAX, UINT64_MAX);
    alone = time_of_a_loss(fixture);
    for (uint64_t tag = 0; tag < OTHERS; tag++)
        assert_int_equal(tag % 2 ? announce(fixture, 2, tag, 100) : arrive(fixture, 2, tag, "x", 1), 0);
    among_others = time_of_a_loss(fixture);
    assert_int_equal(statistics_of(fixture).unexpected_messages, OTHERS);
    /* A walk over the others takes a nanosecond for each at the very least. */
    assert_true(among_others < 5 * alone + OTHERS / 4);
}

static void test_drain_of_one_of_two_endpoints(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofp_endpoint *first = endpoint_of(fixture), *second = &fixture->endpoints[1].base;
    struct ofp_message message = message_from(fixture, 1, 20, 100);
    char memory[8];

    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 20, .context = 1, .memory = memory}), 0);
    assert_int_equal(announce(fixture, 1, 20, 100), 0);
    (void)next_started(fixture);
    assert_int_equal(ofpi_message_announced(fixture->context, second, &message), 0);
    assert_int_equal(arrive(fixture, 1, 21, "ab", 2), 0);
    assert_int_equal(arrive(fixture, 1, 22, "ab", 2), 0);
    assert_int_equal(announce(fixture, 1, 23, 100), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 22, .context = 2, .flags = OFP_PEEK | OFP_CLAIM}),
                     0);
    assert_completed(fixture, 2, 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 30, .context = 3}), 0);
    assert_int_equal(post_at(fixture, second, (struct posting){.peer = 1, .tag = 31, .context = 4}), 0);

    ofpi_receive_context_drain(fixture->context, first, ECANCELED);
    assert_completed(fixture, 3, ECANCELED);
    assert_completed(fixture, 1, ECANCELED);
    assert_quiet(fixture);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 1);
    assert_int_equal(statistics_of(fixture).posted_receives, 1);

    /* The other endpoint goes on: a receive completes where its message arrived. */
    message.tag = 31;
    assert_int_equal(ofpi_message_arrived(fixture->context, second, &message, "ab"), 0);
    assert_ptr_equal(next_record(fixture).endpoint, second);
    ofpi_receive_context_drain(fixture->context, second, ECANCELED);
    assert_quiet(fixture);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 0);
}

static void test_close_frees_what_is_left(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[8], payload[300] = "";

    assert_int_equal(announce(fixture, 1, 1, 8), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 1, .memory = memory, .length = 8}), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 1, .tag = 2, .ignore = 8}), 0);
    for (uint64_t length = 0; length <= 300; length += 50)
        assert_int_equal(arrive(fixture, 2, length, payload, length), 0);
    assert_int_equal(post(fixture, (struct posting){.peer = 2, .tag = 300, .flags = OFP_PEEK | OFP_CLAIM}), 0);
    /* The teardown closes it; the address sanitizer tells what was forgotten. */
    assert_int_equal(statistics_of(fixture).unexpected_messages, 7);
}

int main(void)
{
#define CONTEXT_TEST(function) cmocka_unit_test_setup_teardown(function, setup, receive_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        CONTEXT_TEST(test_unexpected_payloads_of_every_storage),
        CONTEXT_TEST(test_truncation),
        CONTEXT_TEST(test_scattering_and_region_holds),
        CONTEXT_TEST(test_announced_message_is_lent_until_complete),
        CONTEXT_TEST(test_provider_may_complete_or_lose_the_peer_within_the_call),
        CONTEXT_TEST(test_peer_found_dead_by_the_provider),
        CONTEXT_TEST(test_bound_on_memory),
        CONTEXT_TEST(test_every_message_counts),
        CONTEXT_TEST(test_cancel_takes_the_newest),
        CONTEXT_TEST(test_lost_peer),
        CONTEXT_TEST(test_losing_a_peer_costs_by_its_own_messages),
        CONTEXT_TEST(test_drain_of_one_of_two_endpoints),
        CONTEXT_TEST(test_close_frees_what_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
