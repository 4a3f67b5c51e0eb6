/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring by itself: order, fullness, laps that wrap, a hint that lags, slots of the dead, and threads on one mapping (which
 * is what the thread sanitizer can see).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "memory/ring.h"

#define SHIFT 4
#define SLOTS (1u << SHIFT)

static struct shm_ring ring_open(uint64_t position)
{
    struct shm_ring ring = {.shift = SHIFT};

    ring.header = aligned_alloc(SHM_CACHE_LINE, sizeof(struct shm_header));
    ring.slots = aligned_alloc(SHM_CACHE_LINE, SLOTS * sizeof(struct shm_slot));
    assert_true(ring.header && ring.slots);
    memset(ring.header, 0, sizeof(*ring.header));
    memset(ring.slots, 0, SLOTS * sizeof(struct shm_slot));
    shm_ring_init(&ring, position);
    return ring;
}

static void ring_close(struct shm_ring *ring)
{
    free(ring->header);
    free(ring->slots);
}

static bool put(const struct shm_ring *ring, uint32_t owner, uint64_t value)
{
    uint64_t state;
    struct shm_slot *slot = shm_ring_claim(ring, owner, &state);

    if (!slot)
        return false;
    slot->content.tag = value;
    shm_ring_publish(ring, slot, state);
    return true;
}

static bool take(const struct shm_ring *ring, uint64_t *head, uint32_t *owner, uint64_t *value)
{
    uint64_t state = shm_ring_peek(ring, *head);

    if (!shm_ring_is_ready(ring, *head, state))
        return false;
    *owner = shm_slot_owner_of(state);
    *value = shm_ring_find_slot(ring, *head)->content.tag;
    shm_ring_free(ring, (*head)++);
    return true;
}

/* Positions at which every counter begins: also where the lap, and where the position itself wraps. */
static const uint64_t starts[] = {0, 5, (UINT64_C(1) << (32 + SHIFT)) - 2 * SLOTS - 3, UINT64_MAX - 2 * SLOTS - 3};

static void test_order_and_fullness(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        struct shm_ring ring = ring_open(starts[i]);
        uint64_t head = starts[i], sent = 0, received = 0, value;
        uint32_t owner;

        for (unsigned round = 0; round < 200; round++) {
            /* A different fill level each time, the full ring among them. */
            unsigned target = round % (SLOTS + 2);

            while (sent - received < target && put(&ring, 7, sent))
                sent++;
            assert_int_equal(sent - received, target > SLOTS ? SLOTS : target);
            assert_int_equal(shm_ring_has_space(&ring), sent - received < SLOTS);
            assert_int_equal(shm_ring_find_end(&ring, head) - head, sent - received);
            while (take(&ring, &head, &owner, &value)) {
                assert_int_equal(owner, 7);
                assert_int_equal(value, received++);
            }
            assert_int_equal(received, sent);
        }
        ring_close(&ring);
    }
}

/* However far the hint lies behind, the next claim is the first free position: order is kept, no hole is left. */
static void test_lagging_hint(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        struct shm_ring ring = ring_open(starts[i]);
        uint64_t head = starts[i], sent = 0, received = 0, value;
        uint32_t owner;

        for (unsigned round = 0; round < 300; round++) {
            uint64_t lag = (round * 7u) % (3 * SLOTS);

            if (lag <= sent)
                ofp_store_relaxed(&ring.header->tail, starts[i] + sent - lag);
            if (put(&ring, 3, sent))
                sent++;
            else
                assert_int_equal(sent - received, SLOTS);
            if (round % 3) {
                assert_true(take(&ring, &head, &owner, &value));
                assert_int_equal(value, received++);
            }
        }
        ring_close(&ring);
    }
}

/* A slot that was claimed and never published stops the reader, and no one else; skipped, it is as good as new. */
static void test_slot_of_the_dead(void **state)
{
    struct shm_ring ring = ring_open(0);
    uint64_t head = 0, published, value;
    uint32_t owner;

    (void)state;
    assert_non_null(shm_ring_claim(&ring, 5, &published));
    assert_true(put(&ring, 6, 60));
    assert_false(take(&ring, &head, &owner, &value));
    assert_true(shm_ring_is_claimed(&ring, head, shm_ring_peek(&ring, head)));
    assert_int_equal(shm_slot_owner_of(shm_ring_peek(&ring, head)), 5);
    assert_int_equal(shm_ring_find_end(&ring, head), 2);
    shm_ring_free(&ring, head++);
    assert_true(take(&ring, &head, &owner, &value));
    assert_int_equal(owner, 6);
    for (unsigned i = 0; i < SLOTS; i++)
        assert_true(put(&ring, 6, i));
    assert_false(put(&ring, 6, 99));
    ring_close(&ring);
}

/* Killed between claim and hint: the next sender walks on. */
static void test_hint_not_advanced(void **state)
{
    struct shm_ring ring = ring_open(0);
    uint64_t published;

    (void)state;
    assert_non_null(shm_ring_claim(&ring, 5, &published));
    ofp_store_relaxed(&ring.header->tail, 0);
    assert_true(put(&ring, 6, 60));
    assert_int_equal(shm_slot_owner_of(shm_ring_peek(&ring, 1)), 6);
    ring_close(&ring);
}

/* Whatever a hostile process writes into hint and states: a claim ends, and stays within the ring. */
static void test_garbage(void **state)
{
    struct shm_ring ring = ring_open(0);
    uint64_t random = 88172645463325252u, published;

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        struct shm_slot *slot;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (round % 2)
            ofp_store_relaxed(&ring.header->tail, round % 4 == 1 ? random : random >> 58);
        else
            ofp_store_relaxed(&ring.slots[random % SLOTS].state, random >> (round % 60));
        slot = shm_ring_claim(&ring, 1, &published);
        assert_true(!slot || (slot >= ring.slots && slot < ring.slots + SLOTS));
        assert_true(shm_ring_find_end(&ring, random) - random <= SLOTS);
    }
    ring_close(&ring);
}

/* ---------------------------------------------------------------------------------------------------------- threads */

#define SENDERS 3
#define MESSAGES 20000

struct sender {
    const struct shm_ring *ring;
    uint32_t owner;
};

static void *send_all(void *argument)
{
    const struct sender *sender = argument;

    for (uint64_t i = 0; i < MESSAGES; i++)
        while (!put(sender->ring, sender->owner, i))
            sched_yield();
    return NULL;
}

/* Nothing is lost or doubled, and each sender's messages come in the order in which it sent them. */
static void test_threads(void **state)
{
    struct shm_ring ring = ring_open(starts[2]);
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    uint64_t head = starts[2], next[SENDERS] = {0};

    (void)state;
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){&ring, i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
    for (unsigned done = 0; done < SENDERS * MESSAGES;) {
        uint64_t value;
        uint32_t owner;

        if (!take(&ring, &head, &owner, &value)) {
            sched_yield();
            continue;
        }
        assert_in_range(owner, 1, SENDERS);
        assert_int_equal(value, next[owner - 1]++);
        done++;
    }
    for (uint32_t i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    ring_close(&ring);
}

/* ---------------------------------------------------------------------------------------------------- sleep and wake */

#define WAKES 2000

struct sleeper {
    struct shm_ring *ring;
    pthread_mutex_t lock; /* lock, flag and condition stand for the eventfd */
    pthread_cond_t condition;
    bool woken;
};

static void wake(struct sleeper *sleeper)
{
    pthread_mutex_lock(&sleeper->lock);
    sleeper->woken = true;
    pthread_cond_signal(&sleeper->condition);
    pthread_mutex_unlock(&sleeper->lock);
}

static void *send_and_wake(void *argument)
{
    struct sleeper *sleeper = argument;

    for (uint64_t i = 0; i < WAKES; i++) {
        uint64_t state, status;
        struct shm_slot *slot;

        while (!(slot = shm_ring_claim(sleeper->ring, 1, &state)))
            sched_yield();
        slot->content.tag = i;
        status = shm_ring_publish(sleeper->ring, slot, state);
        if (status & SHM_SLEEPING && ofp_clear_bits(&sleeper->ring->header->status, SHM_SLEEPING) & SHM_SLEEPING)
            wake(sleeper);
    }
    return NULL;
}

/* The reader sleeps whenever it finds nothing; were a wake-up lost, it would sleep for ever. */
static void test_no_wake_up_is_lost(void **state)
{
    struct shm_ring ring = ring_open(0);
    struct sleeper sleeper = {&ring, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    pthread_t thread;
    uint64_t head = 0, value;
    uint32_t owner;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, send_and_wake, &sleeper), 0);
    for (uint64_t i = 0; i < WAKES;) {
        if (take(&ring, &head, &owner, &value)) {
            assert_int_equal(value, i++);
            continue;
        }
        ofp_set_bits(&ring.header->status, SHM_SLEEPING);
        if (shm_ring_is_ready(&ring, head, ofp_load_ordered(&shm_ring_find_slot(&ring, head)->state)))
            continue;
        pthread_mutex_lock(&sleeper.lock);
        while (!sleeper.woken)
            pthread_cond_wait(&sleeper.condition, &sleeper.lock);
        sleeper.woken = false;
        pthread_mutex_unlock(&sleeper.lock);
    }
    pthread_join(thread, NULL);
    ring_close(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_fullness),
        cmocka_unit_test(test_lagging_hint),
        cmocka_unit_test(test_slot_of_the_dead),
        cmocka_unit_test(test_hint_not_advanced),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_no_wake_up_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
