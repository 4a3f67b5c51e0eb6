/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sleep handshake as a small model, all interleavings of it.
 *
 * A reader that goes to sleep and senders that publish, on a machine whose stores wait in a buffer of each processor until
 * they reach memory (as on x86; loads may so be seen to pass earlier stores). Atomic read-modify-writes wait for the buffer to
 * be empty, as do the fences that the model is checked against. The model proves that the code's order of steps loses no
 * wake-up, and, so that the proof means something, that it would be lost with either ordered step made a plain one.
 *
 * Per sender:   publish (store READY), read SLEEPING; if set: clear it atomically; if it was us: signal
 * Reader:       set SLEEPING, read the slots; something there: clear SLEEPING, take all; else sleep until signalled
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#define SENDERS 2

enum sender_step { PUBLISH, LOOK, CLEAR, SIGNAL, SENT };
enum reader_step { RAISE, CHECK_FIRST, CHECK_SECOND, LOWER, ASLEEP, TAKE };

struct rules {
    bool ordered_publish; /* the sender's store is an exchange */
    bool ordered_raise;   /* the reader's store is an atomic or */
};

struct world {
    uint8_t ready[SENDERS]; /* memory: one slot each */
    uint8_t sleeping;
    uint8_t signalled;         /* the eventfd */
    uint8_t buffered[SENDERS]; /* the sender's store of its slot has not reached memory */
    uint8_t raise_buffered;    /* nor the reader's of SLEEPING */
    uint8_t sender[SENDERS];   /* enum sender_step */
    uint8_t reader;            /* enum reader_step */
    uint8_t taken[SENDERS];
};

#define SEEN_MAX (1u << 18)
static struct world seen[SEEN_MAX];
static uint32_t seen_count;
static bool used[SEEN_MAX];
static bool lost;

/* True when the state is new. */
static bool remember(const struct world *world)
{
    const uint8_t *bytes = (const uint8_t *)world;
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < sizeof(*world); i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    for (hash %= SEEN_MAX; used[hash]; hash = (hash + 1) % SEEN_MAX)
        if (memcmp(&seen[hash], world, sizeof(*world)) == 0)
            return false;
    used[hash] = true;
    seen[hash] = *world;
    seen_count++;
    return true;
}

static void explore(struct world world, const struct rules *rules);

static void sender_steps(const struct world *world, uint32_t i, const struct rules *rules)
{
    struct world next = *world;

    switch ((enum sender_step)world->sender[i]) {
    case PUBLISH:
        next.sender[i] = LOOK;
        if (rules->ordered_publish)
            next.ready[i] = 1;
        else
            next.buffered[i] = 1;
        explore(next, rules);
        break;
    case LOOK:
        next.sender[i] = world->sleeping ? CLEAR : SENT;
        explore(next, rules);
        break;
    case CLEAR:
        /* Read-modify-write: not before the own stores are out. */
        if (world->buffered[i])
            break;
        next.sender[i] = world->sleeping ? SIGNAL : SENT;
        next.sleeping = 0;
        explore(next, rules);
        break;
    case SIGNAL:
        next.sender[i] = SENT;
        next.signalled = 1;
        explore(next, rules);
        break;
    case SENT:
        break;
    }
}

static void reader_steps(const struct world *world, const struct rules *rules)
{
    struct world next = *world;

    switch ((enum reader_step)world->reader) {
    case RAISE:
        next.reader = CHECK_FIRST;
        if (rules->ordered_raise)
            next.sleeping = 1;
        else
            next.raise_buffered = 1;
        break;
    case CHECK_FIRST:
        /* The slots are looked at one after the other; the ring's head is the first that was not taken. */
        next.reader = world->ready[0] && !world->taken[0] ? LOWER : CHECK_SECOND;
        break;
    case CHECK_SECOND:
        next.reader = world->ready[1] && !world->taken[1] ? LOWER : ASLEEP;
        break;
    case ASLEEP:
        if (!world->signalled)
            return;
        next.signalled = 0;
        next.reader = LOWER;
        break;
    case LOWER:
        if (world->raise_buffered)
            return;
        next.sleeping = 0;
        next.reader = TAKE;
        break;
    case TAKE:
        for (uint32_t i = 0; i < SENDERS; i++)
            next.taken[i] = world->taken[i] || world->ready[i];
        next.reader = RAISE;
        break;
    }
    explore(next, rules);
}

/* Stores leave the buffers whenever they like. */
static void buffer_steps(const struct world *world, const struct rules *rules)
{
    for (uint32_t i = 0; i < SENDERS; i++) {
        if (world->buffered[i]) {
            struct world next = *world;

            next.buffered[i] = 0;
            next.ready[i] = 1;
            explore(next, rules);
        }
    }
    if (world->raise_buffered) {
        struct world next = *world;

        next.raise_buffered = 0;
        next.sleeping = 1;
        explore(next, rules);
    }
}

/* Everybody is done, every store is out, and the reader sleeps on with a message before it. */
static bool is_lost(const struct world *world)
{
    bool message = false;

    if (world->reader != ASLEEP || world->signalled || world->raise_buffered)
        return false;
    for (uint32_t i = 0; i < SENDERS; i++) {
        if (world->sender[i] != SENT || world->buffered[i])
            return false;
        message = message || !world->taken[i];
    }
    return message;
}

static void explore(struct world world, const struct rules *rules)
{
    if (!remember(&world))
        return;
    lost = lost || is_lost(&world);
    for (uint32_t i = 0; i < SENDERS; i++)
        sender_steps(&world, i, rules);
    reader_steps(&world, rules);
    buffer_steps(&world, rules);
}

static bool loses_a_wake_up(struct rules rules)
{
    struct world start;

    memset(&start, 0, sizeof(start));
    memset(used, 0, sizeof(used));
    seen_count = 0;
    lost = false;
    explore(start, &rules);
    /* Too few would mean that the model does not move. */
    assert_in_range(seen_count, 100, SEEN_MAX / 2);
    return lost;
}

static void test_no_interleaving_loses_a_wake_up(void **state)
{
    (void)state;
    assert_false(loses_a_wake_up((struct rules){.ordered_publish = true, .ordered_raise = true}));
}

static void test_both_orders_are_needed(void **state)
{
    (void)state;
    assert_true(loses_a_wake_up((struct rules){.ordered_publish = false, .ordered_raise = true}));
    assert_true(loses_a_wake_up((struct rules){.ordered_publish = true, .ordered_raise = false}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_interleaving_loses_a_wake_up),
        cmocka_unit_test(test_both_orders_are_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
