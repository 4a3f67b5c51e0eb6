/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits, by a model: some sides that all have paths to each other and one pool each. Whoever can does something,
 * drawn by lot: send a request, deal with one that waits and answer it, take a packet, give credits back. At every
 * step nobody has sent a packet for which there is no buffer; and when nobody wants to send any more, all that was
 * sent has been dealt with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "rdm/transfer/credit.h"

#define SIDES 4
#define QUEUE 8192
#define FREE OFPI_CREDIT_CLASSES

struct packet {
    uint8_t kind; /* enum ofpi_credit_class, or FREE */
    uint16_t given[OFPI_CREDIT_CLASSES];
};

/* One side's end of a path, and what is on its way to it. */
struct end {
    struct ofpi_credits credits;
    struct packet queue[QUEUE];
    uint32_t first, count, waiting; /* requests that wait for an answer */
    uint32_t returns;               /* packets in the queue that only give credits back */
    uint64_t asked, answered;
};

static struct ofpi_credit_pool pools[SIDES];
static struct end ends[SIDES][SIDES]; /* [of][towards] */

static void begin(uint32_t posted)
{
    memset(ends, 0, sizeof(ends));
    for (int side = 0; side < SIDES; side++)
        pools[side] = (struct ofpi_credit_pool){.posted = posted};
    for (int side = 0; side < SIDES; side++)
        for (int other = 0; other < SIDES; other++)
            if (side != other)
                assert_true(ofpi_credit_open(&ends[side][other].credits, &pools[side]));
    for (int side = 0; side < SIDES; side++)
        for (int other = 0; other < SIDES; other++)
            assert_true(ofpi_credit_receive(&ends[side][other].credits, ends[other][side].credits.window));
}

/* Buffers of a side that hold a packet, or have one on its way to them. */
static uint32_t in_use(int side)
{
    uint32_t count = 0;

    for (int other = 0; other < SIDES; other++)
        count += ends[side][other].count + ends[side][other].waiting;
    return count;
}

static void put(int from, int to, uint8_t kind)
{
    struct end *there = &ends[to][from];
    struct packet packet = {.kind = kind};

    if (kind != FREE)
        ofpi_credit_charge(&ends[from][to].credits, kind);
    ofpi_credit_grant(&ends[from][to].credits, &pools[from], packet.given);
    assert_true(there->count < QUEUE);
    there->queue[(there->first + there->count++) % QUEUE] = packet;
    there->returns += kind == FREE;
    assert_true(there->returns <= OFPI_CREDIT_SPARE);
    assert_true(in_use(to) <= pools[to].posted);
    assert_true(pools[from].granted <= pools[from].posted);
}

static bool send_request(int from, int to)
{
    if (!ofpi_credit_is_left(&ends[from][to].credits, OFPI_CREDIT_REQUEST))
        return false;
    put(from, to, OFPI_CREDIT_REQUEST);
    ends[from][to].asked++;
    return true;
}

static bool take(int side, int from)
{
    struct end *end = &ends[side][from];
    struct packet packet;

    if (!end->count)
        return false;
    packet = end->queue[end->first++ % QUEUE];
    end->count--;
    assert_true(ofpi_credit_receive(&end->credits, packet.given));
    if (packet.kind == FREE) {
        end->returns--;
        return true;
    }
    assert_true(ofpi_credit_accept_packet(&end->credits, packet.kind));
    if (packet.kind == OFPI_CREDIT_REQUEST) {
        end->waiting++;
    } else {
        end->answered++;
        ofpi_credit_mark_owed(&end->credits, OFPI_CREDIT_ANSWER);
    }
    return true;
}

static bool answer(int side, int to)
{
    struct end *end = &ends[side][to];

    if (!end->waiting || !ofpi_credit_is_left(&end->credits, OFPI_CREDIT_ANSWER))
        return false;
    end->waiting--;
    put(side, to, OFPI_CREDIT_ANSWER);
    ofpi_credit_mark_owed(&end->credits, OFPI_CREDIT_REQUEST);
    return true;
}

static bool give_back(int side, int to)
{
    if (!ofpi_credit_is_due(&ends[side][to].credits))
        return false;
    put(side, to, FREE);
    return true;
}

static bool one_step(int side, int other, int what, bool more)
{
    switch (what) {
    case 0:
        return take(side, other);
    case 1:
        return answer(side, other);
    case 2:
        return give_back(side, other);
    default:
        return more && send_request(side, other);
    }
}

/* Whoever could do something after all by itself: false, nobody. */
static bool any_step(bool more)
{
    for (int side = 0; side < SIDES; side++)
        for (int other = 0; other < SIDES; other++)
            for (int what = 0; what < 4; what++)
                if (side != other && one_step(side, other, what, more))
                    return true;
    return false;
}

static void run(uint32_t posted, unsigned seed)
{
    uint64_t asked = 0;

    begin(posted);
    srand(seed);
    for (int step = 0; step < 60000; step++) {
        int side = rand() % SIDES, other = rand() % SIDES, what = rand() % 6;

        /* Some want to send more than others, and the lot is unfair to those that give back. */
        if (side != other)
            one_step(side, other, what < 3 ? what : 3, true);
        if (step % 1000 == 0)
            assert_true(any_step(true));
    }
    while (any_step(false))
        ;
    for (int side = 0; side < SIDES; side++) {
        for (int other = 0; other < SIDES; other++) {
            assert_int_equal(ends[side][other].asked, ends[side][other].answered);
            assert_int_equal(ends[side][other].count + ends[side][other].waiting, 0);
            if (side != other)
                assert_true(ends[side][other].asked > 100);
            asked += ends[side][other].asked;
        }
    }
    assert_true(asked > 0);
}

static void test_random_sides_never_overrun_and_never_stick(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 5; seed++) {
        run((SIDES - 1) * OFPI_CREDIT_PATH_LEAST, seed); /* none to spare */
        run(100, seed);
        run(2000, seed);
    }
}

/* Everybody sends whatever they may before anybody takes anything, again and again. */
static void test_full_windows_in_every_direction(void **state)
{
    (void)state;
    begin(200);
    for (int round = 0; round < 2000; round++) {
        bool sent = false;

        for (int side = 0; side < SIDES; side++)
            for (int other = 0; other < SIDES; other++)
                while (side != other && send_request(side, other))
                    sent = true;
        assert_true(sent || round);
        for (int what = 0; what < 3; what++)
            for (int side = 0; side < SIDES; side++)
                for (int other = 0; other < SIDES; other++)
                    while (side != other && one_step(side, other, what, false))
                        ;
    }
    while (any_step(false))
        ;
    for (int side = 0; side < SIDES; side++)
        for (int other = 0; other < SIDES; other++)
            assert_true(side == other ||
                        (ends[side][other].asked == ends[side][other].answered && ends[side][other].asked >= 2000));
}

static void test_windows_grow_in_use_and_a_full_pool_takes_no_path(void **state)
{
    struct ofpi_credit_pool pool = {.posted = 1000};
    struct ofpi_credits credits, more[100];
    uint16_t given[OFPI_CREDIT_CLASSES];
    int count = 0;

    (void)state;
    assert_true(ofpi_credit_open(&credits, &pool));
    for (int round = 0; round < 20; round++) {
        while (ofpi_credit_accept_packet(&credits, OFPI_CREDIT_REQUEST))
            ofpi_credit_mark_owed(&credits, OFPI_CREDIT_REQUEST);
        ofpi_credit_grant(&credits, &pool, given);
    }
    assert_true(credits.window[OFPI_CREDIT_REQUEST] > 300);
    assert_int_equal(credits.window[OFPI_CREDIT_ANSWER], OFPI_CREDIT_FIRST);
    while (count < 100 && ofpi_credit_open(&more[count], &pool))
        count++;
    assert_true(count > 5 && count < 100);
    /* It gives back what it uses. */
    for (int round = 0; round < 20; round++) {
        while (ofpi_credit_accept_packet(&credits, OFPI_CREDIT_REQUEST))
            ofpi_credit_mark_owed(&credits, OFPI_CREDIT_REQUEST);
        ofpi_credit_grant(&credits, &pool, given);
    }
    assert_true(pool.posted - pool.granted >= OFPI_CREDIT_PATH_LEAST);
    while (count--)
        ofpi_credit_close(&more[count], &pool);
    ofpi_credit_close(&credits, &pool);
    assert_int_equal(pool.granted, 0);
}

/* One path with large windows at the beginning does not keep a hundred others out. */
static void test_a_pool_that_runs_low_begins_with_less(void **state)
{
    struct ofpi_credit_pool pool = {.posted = 1024};
    struct ofpi_credits paths[200];
    int count = 0, large = 0;

    (void)state;
    while (count < 200 && ofpi_credit_open(&paths[count], &pool)) {
        large += paths[count].window[OFPI_CREDIT_REQUEST] == OFPI_CREDIT_FIRST;
        assert_true(paths[count].window[OFPI_CREDIT_REQUEST] >= OFPI_CREDIT_LEAST);
        assert_int_equal(paths[count].window[OFPI_CREDIT_REQUEST], paths[count].window[OFPI_CREDIT_ANSWER]);
        count++;
    }
    assert_int_equal(large, 42);
    assert_int_equal(count, 128);
    while (count--)
        ofpi_credit_close(&paths[count], &pool);
    assert_int_equal(pool.granted, 0);
}

static void test_more_than_there_can_be(void **state)
{
    struct ofpi_credit_pool pool = {.posted = OFPI_CREDIT_PATH_LEAST};
    const uint16_t most[OFPI_CREDIT_CLASSES] = {UINT16_MAX, 0}, one[OFPI_CREDIT_CLASSES] = {1, 0};
    struct ofpi_credits credits;

    (void)state;
    assert_true(ofpi_credit_open(&credits, &pool));
    assert_true(ofpi_credit_receive(&credits, most));
    assert_false(ofpi_credit_receive(&credits, one));
    for (int i = 0; i < credits.window[OFPI_CREDIT_ANSWER]; i++)
        assert_true(ofpi_credit_accept_packet(&credits, OFPI_CREDIT_ANSWER));
    assert_false(ofpi_credit_accept_packet(&credits, OFPI_CREDIT_ANSWER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sides_never_overrun_and_never_stick),
        cmocka_unit_test(test_full_windows_in_every_direction),
        cmocka_unit_test(test_windows_grow_in_use_and_a_full_pool_takes_no_path),
        cmocka_unit_test(test_a_pool_that_runs_low_begins_with_less),
        cmocka_unit_test(test_more_than_there_can_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
