/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lost packet buffers on a simulated device: a shared receive queue, queue pairs that take from it when a message begins, one completion
 * queue, and queue pairs that are destroyed in the middle of a message. Every choice is random. The model knows where each buffer is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "packet/buffers.h"

enum { WANTED = 48, SPARE = 16, COUNT = WANTED + SPARE, PAIRS = 12, RUNS = 400, STEPS = 3000, NONE = -1 };

enum place { AT_USER, IN_RESERVE, IN_QUEUE, AT_PAIR, COMPLETED, LOST };

struct pair {
    struct verbs_holder holder;
    bool exists;    /* for the device */
    bool is_holder; /* for the code under test */
    bool is_ending; /* was seen destroyed before the completion queue was read */
    bool is_silent; /* receives nothing before the end of the run */
    int buffer;     /* of a message that has begun; NONE */
};

struct completion {
    uint32_t buffer, pair;
};

static struct verbs_buffer all[COUNT];
static struct verbs_buffers buffers;
static enum place places[COUNT];
static struct pair pairs[PAIRS];
static uint32_t queue[COUNT], queue_count;             /* shared receive queue, the oldest first */
static struct completion completions[COUNT];           /* the oldest first */
static uint32_t completion_count, lost, lost_in_total; /* lost: and not reclaimed */
static uint64_t random_state;

static uint32_t choose(uint32_t range)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state * 0x2545f4914f6cdd1du >> 33) % range);
}

/* ----------------------------------------------------------------------------------------------------------- device */

/* The device must not have the buffer already, and has no more than its queue was created for. */
static void post_due_buffers(void)
{
    uint32_t index;

    while (verbs_buffers_pop(&buffers, &index)) {
        assert_int_equal(places[index], IN_RESERVE);
        places[index] = IN_QUEUE;
        assert_true(queue_count < WANTED);
        queue[queue_count++] = index;
    }
}

static void begin_message(struct pair *pair)
{
    if (!pair->exists || pair->buffer != NONE || !queue_count)
        return;
    pair->buffer = (int)queue[0];
    places[queue[0]] = AT_PAIR;
    memmove(queue, queue + 1, --queue_count * sizeof(queue[0]));
}

static void end_message(struct pair *pair)
{
    if (!pair->exists || pair->buffer == NONE)
        return;
    places[pair->buffer] = COMPLETED;
    completions[completion_count++] =
        (struct completion){.buffer = (uint32_t)pair->buffer, .pair = (uint32_t)(pair - pairs)};
    pair->buffer = NONE;
}

static void destroy_pair(struct pair *pair)
{
    if (!pair->exists)
        return;
    pair->exists = false;
    if (pair->buffer == NONE)
        return;
    places[pair->buffer] = LOST;
    lost++;
    lost_in_total++;
    pair->buffer = NONE;
}

/* ---------------------------------------------------------------------------------------------------------- program */

static void create_pair(struct pair *pair)
{
    if (pair->is_holder)
        return;
    *pair = (struct pair){.exists = true, .is_holder = true, .buffer = NONE, .is_silent = choose(20) == 0};
    verbs_holder_add(&buffers, &pair->holder);
}

/* What is called lost is in no queue, and at no queue pair. */
static void reclaim_buffers(void)
{
    verbs_buffers_reclaim(&buffers);
    for (struct ofp_list *node = buffers.reserve.next; node != &buffers.reserve; node = node->next) {
        uint32_t index = (uint32_t)(OFP_CONTAINER_OF(node, struct verbs_buffer, node) - all);

        assert_true(places[index] == IN_RESERVE || places[index] == LOST);
        lost -= places[index] == LOST;
        places[index] = IN_RESERVE;
    }
}

/* Read some completions, or all. Only then those of destroyed queue pairs are known to have been read. */
static void read_completions(bool everything)
{
    uint32_t count = everything ? completion_count : choose(completion_count + 1), kept = completion_count - count;

    for (uint32_t i = 0; i < PAIRS; i++)
        pairs[i].is_ending = pairs[i].is_holder && !pairs[i].exists;
    for (uint32_t i = 0; i < count; i++) {
        struct pair *pair = &pairs[completions[i].pair];

        verbs_buffers_complete(&buffers, completions[i].buffer, pair->is_holder ? &pair->holder : NULL);
        places[completions[i].buffer] = AT_USER;
    }
    memmove(completions, completions + count, kept * sizeof(completions[0]));
    completion_count = kept;
    for (uint32_t i = 0; i < PAIRS && !kept; i++) {
        if (pairs[i].is_ending) {
            pairs[i].is_holder = false;
            verbs_holder_remove(&buffers, &pairs[i].holder);
        }
    }
    if (buffers.changed)
        reclaim_buffers();
    post_due_buffers();
}

static void return_buffers(bool everything)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        if (places[i] == AT_USER && (everything || choose(3) == 0)) {
            places[i] = IN_RESERVE;
            verbs_buffers_return(&buffers, i);
            post_due_buffers();
        }
    }
}

static void check_counts(void)
{
    uint32_t reserved = 0;

    for (uint32_t i = 0; i < COUNT; i++)
        reserved += places[i] == IN_RESERVE;
    assert_true(verbs_buffers_count_usable(&buffers) >= WANTED || buffers.reserved == 0);
    assert_true(COUNT - buffers.reserved - verbs_buffers_count_usable(&buffers) <= lost);
    assert_int_equal(buffers.reserved, reserved);
}

static void begin_run(uint64_t seed)
{
    random_state = seed * 0x9e3779b97f4a7c15u | 1;
    memset(all, 0, sizeof(all));
    memset(pairs, 0, sizeof(pairs));
    queue_count = completion_count = lost = lost_in_total = 0;
    verbs_buffers_init(&buffers, all, WANTED);
    for (uint32_t i = 0; i < COUNT; i++) {
        places[i] = IN_RESERVE;
        verbs_buffers_return(&buffers, i);
        post_due_buffers();
    }
    assert_int_equal(queue_count, WANTED);
}

/* Each queue pair receives whole messages until the last of them has overtaken every lost buffer. */
static void receive_everywhere(void)
{
    for (uint32_t i = 0; i < PAIRS; i++)
        create_pair(&pairs[i]);
    for (uint32_t round = 0; round < 2 * COUNT; round++) {
        for (uint32_t i = 0; i < PAIRS; i++) {
            end_message(&pairs[i]);
            begin_message(&pairs[i]);
            end_message(&pairs[i]);
            read_completions(true);
            return_buffers(true);
        }
    }
}

static void take_step(uint32_t deaths)
{
    struct pair *pair = &pairs[choose(PAIRS)];
    uint32_t step = choose(100);

    if (step < 30 && !pair->is_silent)
        begin_message(pair);
    else if (step < 60 && !pair->is_silent)
        end_message(pair);
    else if (step < 80)
        read_completions(choose(3) == 0);
    else if (step < 90)
        return_buffers(false);
    else if (step < 90 + deaths)
        destroy_pair(pair);
    else
        create_pair(pair);
    check_counts();
}

static void test_lost_buffers_return(void **state)
{
    uint32_t total = 0;

    (void)state;
    for (uint64_t run = 1; run <= RUNS; run++) {
        begin_run(run);
        for (uint32_t step = 0; step < STEPS; step++)
            take_step((uint32_t)run % 6);
        read_completions(true);
        receive_everywhere();
        assert_int_equal(lost, 0);
        assert_int_equal(buffers.reclaimed, lost_in_total);
        assert_int_equal(verbs_buffers_count_usable(&buffers), WANTED);
        assert_int_equal(queue_count, WANTED);
        assert_int_equal(buffers.reserved, SPARE);
        total += lost_in_total;
    }
    /* Many times what the device has. */
    printf("%u lost buffers in %u runs\n", total, (uint32_t)RUNS);
    assert_true(total > 100 * COUNT);
}

/* A queue pair that receives nothing may have any of the overtaken buffers: the reserve replaces them. */
static void test_reserve_replaces_what_may_be_lost(void **state)
{
    (void)state;
    begin_run(1);
    create_pair(&pairs[0]);
    for (uint32_t i = 0; i < SPARE; i++) {
        create_pair(&pairs[1]);
        begin_message(&pairs[1]);
        destroy_pair(&pairs[1]);
        create_pair(&pairs[2]);
        begin_message(&pairs[2]);
        end_message(&pairs[2]);
        read_completions(true);
        return_buffers(true);
        destroy_pair(&pairs[2]);
        read_completions(true);
    }
    assert_int_equal(buffers.reclaimed, 0);
    /* One of them may be in use. */
    assert_int_equal(buffers.reserved, 1);
    assert_int_equal(verbs_buffers_count_usable(&buffers), WANTED);
    begin_message(&pairs[0]);
    end_message(&pairs[0]);
    read_completions(true);
    assert_int_equal(buffers.reclaimed, SPARE);
    return_buffers(true);
    assert_int_equal(buffers.reserved, SPARE);
    assert_int_equal(queue_count, WANTED);
}

/* The buffer of a message that takes long is replaced by none, and returns. */
static void test_slow_message_is_not_lost(void **state)
{
    (void)state;
    begin_run(1);
    create_pair(&pairs[0]);
    create_pair(&pairs[1]);
    begin_message(&pairs[0]);
    for (uint32_t i = 0; i < 10 * COUNT; i++) {
        begin_message(&pairs[1]);
        end_message(&pairs[1]);
        read_completions(true);
        return_buffers(true);
    }
    assert_int_equal(queue_count, WANTED - 1);
    end_message(&pairs[0]);
    read_completions(true);
    return_buffers(true);
    assert_int_equal(buffers.reclaimed, 0);
    assert_int_equal(buffers.reserved, SPARE);
    assert_int_equal(queue_count, WANTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_buffers_return),
        cmocka_unit_test(test_reserve_replaces_what_may_be_lost),
        cmocka_unit_test(test_slow_message_is_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
