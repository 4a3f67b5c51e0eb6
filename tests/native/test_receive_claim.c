/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that requests hold: fetched while the program computes, claimed, accepted, given back, lost. */
#include "match/receive_claim.h"
#include "receive_fixture.h"

#define LIMIT 1000
#define LENGTH 200
#define TAG 7

/* One test asks for more memory than any machine has: sanitizers take that for a fault otherwise. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

/* Requests, by the contexts of their operations. */
enum { FIRST = 1, SECOND, PLAIN };

static int setup(void **state) { return receive_fixture_set_up(state, LIMIT, 4); }

static int teardown(void **state)
{
    struct receive_fixture *fixture = *state;

    assert_quiet(fixture);
    return receive_fixture_tear_down(state);
}

static void assert_keeps(struct receive_fixture *fixture, uint64_t messages, uint64_t bytes)
{
    struct ofpi_receive_context_statistics statistics = statistics_of(fixture);

    assert_int_equal(statistics.unexpected_messages, messages);
    assert_int_equal(statistics.unexpected_bytes, bytes);
    assert_int_equal(statistics.posted_receives, 0);
    assert_int_equal(statistics.announced_messages, 0);
}

static void want(struct receive_fixture *fixture, uint64_t context, uint64_t flags, void *memory, uint64_t length)
{
    struct posting posting = {
        .peer = 1, .tag = TAG, .context = context, .flags = flags, .memory = memory, .length = length};

    assert_int_equal(post(fixture, posting), 0);
}

/* A request's receive of unknown size meets the message of LENGTH bytes, which is there or comes now. */
static void hold(struct receive_fixture *fixture, uint64_t context)
{
    want(fixture, context, OFPI_REQUEST | OFP_HOLD | OFP_CLAIM, NULL, 0);
    if (fixture->completion_next == fixture->completion_count)
        assert_int_equal(announce(fixture, 1, TAG, LENGTH), 0);
    assert_true(fixture->completions[fixture->completion_next].completion.flags & OFP_COMPLETED_CLAIM);
    assert_completed(fixture, context, 0);
}

static void claim(struct receive_fixture *fixture, uint64_t context, char *memory)
{
    want(fixture, context, OFPI_REQUEST | OFP_CLAIM, memory, LENGTH);
}

static int unclaim(struct receive_fixture *fixture, uint64_t context)
{
    return ofpi_receive_unclaim(fixture->context, endpoint_of(fixture), context, NULL);
}

static void accept(struct receive_fixture *fixture, uint64_t context)
{
    ofpi_receive_accept(fixture->context, endpoint_of(fixture), context);
}

/* The time is over in which a message is left to its request. */
static void wait_long(struct receive_fixture *fixture) { ofpi_timers_run(&fixture->domain.timers, UINT64_MAX); }

static void payload(char *bytes)
{
    for (int i = 0; i < LENGTH; i++)
        bytes[i] = (char)(i * 3);
}

static void move(struct ofp_receive *receive)
{
    char bytes[LENGTH];

    payload(bytes);
    assert_int_equal(receive->length, LENGTH);
    ofpi_receive_write(receive, 0, bytes, LENGTH);
    ofpi_receive_complete(receive, 0, 0);
}

static void assert_payload(const char *memory)
{
    char bytes[LENGTH];

    payload(bytes);
    assert_memory_equal(memory, bytes, LENGTH);
}

static void test_fetched_before_it_is_claimed(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[LENGTH];

    hold(fixture, FIRST);
    assert_quiet(fixture);
    wait_long(fixture);
    move(next_started(fixture));
    assert_quiet(fixture);
    assert_keeps(fixture, 1, LENGTH);
    claim(fixture, FIRST, memory);
    assert_completed(fixture, FIRST, 0);
    assert_payload(memory);
    accept(fixture, FIRST);
    assert_keeps(fixture, 0, 0);
}

static void test_claimed_while_it_is_fetched(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[LENGTH];

    hold(fixture, FIRST);
    wait_long(fixture);
    claim(fixture, FIRST, memory);
    assert_int_equal(fixture->completion_next, fixture->completion_count);
    move(next_started(fixture));
    assert_completed(fixture, FIRST, 0);
    assert_payload(memory);
    accept(fixture, FIRST);
    assert_keeps(fixture, 0, 0);
}

static void test_claimed_before_it_is_fetched_goes_straight_into_its_memory(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[LENGTH];
    struct ofp_receive *receive;

    hold(fixture, FIRST);
    claim(fixture, FIRST, memory);
    wait_long(fixture);
    receive = next_started(fixture);
    assert_ptr_equal(receive->iov->iov_base, memory);
    assert_null(receive->regions[0]);
    assert_false(ofpi_receive_context_is_announce_only(fixture->context));
    move(receive);
    assert_completed(fixture, FIRST, 0);
    assert_payload(memory);
    accept(fixture, FIRST);
    assert_keeps(fixture, 0, 0);
}

static void test_beyond_the_bound_it_waits_for_its_request(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[2 * LIMIT];

    want(fixture, FIRST, OFPI_REQUEST | OFP_HOLD | OFP_CLAIM, NULL, 0);
    assert_int_equal(announce(fixture, 1, TAG, LIMIT), 0);
    assert_completed(fixture, FIRST, 0);
    wait_long(fixture);
    assert_quiet(fixture);
    assert_int_equal(statistics_of(fixture).announced_messages, 1);
    want(fixture, FIRST, OFPI_REQUEST | OFP_CLAIM, memory, sizeof(memory));
    ofpi_receive_complete(next_started(fixture), 0, 0);
    assert_completed(fixture, FIRST, 0);
    accept(fixture, FIRST);
    assert_keeps(fixture, 0, 0);
}

static void test_without_memory_it_waits_for_its_request(void **state)
{
    struct receive_fixture *fixture = *state;
    struct ofpi_unexpected_messages *unexpected = &fixture->context->unexpected;

    unexpected->memory_limit = UINT64_MAX;
    want(fixture, FIRST, OFPI_REQUEST | OFP_HOLD | OFP_CLAIM, NULL, 0);
    assert_int_equal(announce(fixture, 1, TAG, UINT64_MAX / 4), 0);
    assert_completed(fixture, FIRST, 0);
    wait_long(fixture);
    assert_quiet(fixture);
    assert_int_equal(statistics_of(fixture).announced_messages, 1);
    assert_int_equal(unclaim(fixture, FIRST), 0);
    assert_int_equal(statistics_of(fixture).unexpected_messages, 1);
    lose(fixture, 1, OFP_EPEERLOST, false);
    assert_keeps(fixture, 0, 0);
}

static void test_given_back_on_its_way_it_is_the_next_receives(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[LENGTH], into[LENGTH];

    hold(fixture, FIRST);
    claim(fixture, FIRST, memory);
    assert_int_equal(unclaim(fixture, FIRST), 1);
    want(fixture, PLAIN, OFP_PEEK, NULL, 0);
    assert_completed(fixture, PLAIN, 0);
    want(fixture, PLAIN, 0, into, sizeof(into));
    assert_int_equal(fixture->completion_next, fixture->completion_count);
    move(next_started(fixture));
    assert_completed(fixture, PLAIN, 0);
    assert_payload(into);
    /* Its memory was in use until now. */
    assert_completed(fixture, FIRST, ECANCELED);
    assert_keeps(fixture, 0, 0);
}

static void test_given_back_on_its_way_it_is_claimed_again(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[LENGTH], other[LENGTH];

    hold(fixture, FIRST);
    claim(fixture, FIRST, memory);
    assert_int_equal(unclaim(fixture, FIRST), 1);
    hold(fixture, SECOND);
    claim(fixture, SECOND, other);
    move(next_started(fixture));
    assert_completed(fixture, SECOND, 0);
    assert_payload(other);
    accept(fixture, SECOND);
    assert_completed(fixture, FIRST, ECANCELED);
    assert_keeps(fixture, 0, 0);
}

static void test_given_back_twice(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[LENGTH], other[LENGTH], into[LENGTH];

    hold(fixture, FIRST);
    claim(fixture, FIRST, memory);
    assert_int_equal(unclaim(fixture, FIRST), 1);
    hold(fixture, SECOND);
    claim(fixture, SECOND, other);
    /* Nothing of the second is used any more. */
    assert_int_equal(unclaim(fixture, SECOND), 0);
    want(fixture, PLAIN, 0, into, sizeof(into));
    move(next_started(fixture));
    assert_completed(fixture, PLAIN, 0);
    assert_payload(into);
    assert_completed(fixture, FIRST, ECANCELED);
    assert_keeps(fixture, 0, 0);
}

static void test_received_and_given_back_it_keeps_its_place(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[LENGTH], into[LENGTH];

    hold(fixture, FIRST);
    claim(fixture, FIRST, memory);
    move(next_started(fixture));
    assert_completed(fixture, FIRST, 0);
    assert_int_equal(arrive(fixture, 1, TAG, "later", 5), 0);
    assert_int_equal(unclaim(fixture, FIRST), 1);
    assert_keeps(fixture, 2, LENGTH + 5);
    want(fixture, PLAIN, 0, into, sizeof(into));
    assert_completed(fixture, PLAIN, 0);
    assert_payload(into);
    assert_completed(fixture, FIRST, ECANCELED);
    want(fixture, PLAIN, 0, into, sizeof(into));
    assert_completed(fixture, PLAIN, 0);
    assert_memory_equal(into, "later", 5);
}

static void test_what_was_here_is_given_back(void **state)
{
    struct receive_fixture *fixture = *state;
    char bytes[LENGTH], memory[LENGTH], into[LENGTH];

    payload(bytes);
    assert_int_equal(arrive(fixture, 1, TAG, bytes, LENGTH), 0);
    hold(fixture, FIRST);
    claim(fixture, FIRST, memory);
    assert_completed(fixture, FIRST, 0);
    /* It is the core's own memory that is given back. */
    assert_int_equal(unclaim(fixture, FIRST), 0);
    memset(memory, 0, sizeof(memory));
    want(fixture, PLAIN, 0, into, sizeof(into));
    assert_completed(fixture, PLAIN, 0);
    assert_payload(into);
    assert_keeps(fixture, 0, 0);
}

/* Whatever state it is in, its sender's loss is told once, and nothing stays. */
static void test_its_sender_is_lost(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[LENGTH], other[LENGTH];

    hold(fixture, FIRST);
    claim(fixture, FIRST, memory);
    next_started(fixture);
    lose(fixture, 1, OFP_EPEERLOST, false);
    assert_completed(fixture, FIRST, OFP_EPEERLOST);
    assert_keeps(fixture, 0, 0);

    hold(fixture, FIRST);
    wait_long(fixture);
    next_started(fixture);
    lose(fixture, 1, OFP_EPEERLOST, false);
    assert_quiet(fixture);
    claim(fixture, FIRST, memory);
    assert_completed(fixture, FIRST, OFP_EPEERLOST);
    assert_keeps(fixture, 0, 0);

    hold(fixture, FIRST);
    claim(fixture, FIRST, memory);
    next_started(fixture);
    assert_int_equal(unclaim(fixture, FIRST), 1);
    hold(fixture, SECOND);
    claim(fixture, SECOND, other);
    lose(fixture, 1, OFP_EPEERLOST, false);
    assert_completed(fixture, FIRST, ECANCELED);
    assert_completed(fixture, SECOND, OFP_EPEERLOST);
    assert_keeps(fixture, 0, 0);
}

static void test_the_endpoint_closes(void **state)
{
    struct receive_fixture *fixture = *state;
    char memory[LENGTH], other[LENGTH];

    hold(fixture, FIRST);
    claim(fixture, FIRST, memory);
    move(next_started(fixture));
    assert_completed(fixture, FIRST, 0);
    hold(fixture, SECOND);
    claim(fixture, SECOND, other);
    next_started(fixture);
    assert_int_equal(unclaim(fixture, SECOND), 1);
    ofpi_receive_context_drain(fixture->context, endpoint_of(fixture), ECANCELED);
    /* The first was told that it has received the message. */
    assert_completed(fixture, SECOND, ECANCELED);
    assert_quiet(fixture);
    assert_keeps(fixture, 0, 0);
    accept(fixture, FIRST);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_fetched_before_it_is_claimed),
        TEST(test_claimed_while_it_is_fetched),
        TEST(test_claimed_before_it_is_fetched_goes_straight_into_its_memory),
        TEST(test_beyond_the_bound_it_waits_for_its_request),
        TEST(test_without_memory_it_waits_for_its_request),
        TEST(test_given_back_on_its_way_it_is_the_next_receives),
        TEST(test_given_back_on_its_way_it_is_claimed_again),
        TEST(test_given_back_twice),
        TEST(test_received_and_given_back_it_keeps_its_place),
        TEST(test_what_was_here_is_given_back),
        TEST(test_its_sender_is_lost),
        TEST(test_the_endpoint_closes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
