/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A window of operations on remote memory that is never drained. It begins by asking the owner, since the memory is not
 * mapped yet, and changes to direct access once it is. The order of the operations holds across the change.
 *
 * Both sides live in one process, so the test decides who makes progress: the visitor never sees all of its operations
 * answered unless its provider holds some back.
 */
#include "test_shm_memory.h"

#define HALF_WINDOW 32
#define MOST_ROUNDS 10000

struct window {
    struct side *owner, *visitor;
    uint64_t key[2]; /* operations take turns between these regions */
    uint32_t peer;
    uint64_t posted, ended;
    uint64_t values[4 * HALF_WINDOW], found[4 * HALF_WINDOW];
};

/* Operation 2n writes n into the region, operation 2n + 1 reads it back (RAW); the next write replaces it (WAW, WAR). */
static void window_post(struct window *window, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number = window->posted++, at = number / 2 % (4 * HALF_WINDOW), key = window->key[number / 2 % 2];

        if (number % 2 == 0) {
            window->values[at] = number / 2 + 1;
            post(window->visitor, remote(OFP_WRITE, window->peer, &window->values[at], 8, key, number));
        } else {
            post(window->visitor, remote(OFP_READ, window->peer, &window->found[at], 8, key, number));
        }
    }
}

static void window_take_ended(struct window *window)
{
    struct ofp_completion row;

    while (ofp_cq_read(window->visitor->cq, &row, 1) == 1) {
        CHECK_EQUAL(row.error, 0);
        if (row.context % 2)
            CHECK_EQUAL(window->found[row.context / 2 % (4 * HALF_WINDOW)], row.context / 2 + 1);
        window->ended++;
    }
}

/* The owner answers one half of the window while the other half is posted: something is always owed to the visitor. */
static void window_turn(struct window *window)
{
    ofp_domain_progress(window->owner->domain);
    if (window->posted - window->ended < 2 * HALF_WINDOW)
        window_post(window, HALF_WINDOW);
    window_take_ended(window);
}

static void window_drain(struct window *window)
{
    uint64_t deadline = now_ns() + PATIENCE;

    while (window->ended < window->posted) {
        ofp_domain_progress(window->owner->domain);
        window_take_ended(window);
        CHECK(now_ns() < deadline);
    }
}

static void window_open(struct window *window, struct shared *shared, struct side sides[2])
{
    struct ofp_operation message = tagged(OFP_TSEND, 0, 1, "x", 1, 0);
    uint64_t deadline = now_ns() + PATIENCE;
    struct ofp_completion row;

    side_open(&sides[OWNER], shared, OWNER);
    side_open(&sides[VISITOR], shared, VISITOR);
    window->owner = &sides[OWNER];
    window->visitor = &sides[VISITOR];
    window->peer = message.peer = insert_rank(&sides[VISITOR], shared, OWNER);
    post(&sides[VISITOR], message);
    while (ofp_cq_read(sides[VISITOR].cq, &row, 1) != 1) {
        ofp_domain_progress(sides[OWNER].domain);
        CHECK(now_ns() < deadline);
    }
    CHECK_EQUAL(row.error, 0);
}

/* Until nothing is owed although the window was never drained. */
static struct shm_link *window_change(struct window *window)
{
    struct shm_link *link;
    uint32_t rounds = 0;

    window->key[0] = window->key[1] = MAPPED;
    window_post(window, HALF_WINDOW);
    link = link_to(window->visitor, window->peer);
    CHECK(link->unanswered);
    while (link->unanswered && ++rounds < MOST_ROUNDS)
        window_turn(window);
    CHECK(rounds < MOST_ROUNDS);
    return link;
}

static void change_process(struct shared *shared, uint32_t rank)
{
    static struct window window;
    struct side sides[2];
    struct shm_link *link;
    uint32_t id;

    (void)rank;
    window_open(&window, shared, sides);
    allocate_key(&sides[OWNER], SIZE, MAPPED, &id);
    link = window_change(&window);
    /* From here on nobody is asked: an operation ends within its post. */
    window_drain(&window);
    window_post(&window, 2 * HALF_WINDOW);
    CHECK_EQUAL(link->unanswered, 0);
    window_take_ended(&window);
    CHECK_EQUAL(window.ended, window.posted);
    side_close(&sides[VISITOR]);
    side_close_with(&sides[OWNER], &id, 1);
}

static void test_full_window_becomes_direct(void **state)
{
    (void)state;
    run_processes(1, change_process, NULL);
}

/* Every second region is out of reach, so waiting would gain nothing: the run of reachable operations never gets long. */
static void mixed_process(struct shared *shared, uint32_t rank)
{
    static struct window window;
    static uint8_t plain[SIZE];
    struct side sides[2];
    uint32_t ids[2];

    (void)rank;
    window_open(&window, shared, sides);
    allocate_key(&sides[OWNER], SIZE, MAPPED, &ids[0]);
    ids[1] = register_key(&sides[OWNER], plain, SIZE, BOTH_WAYS, PLAIN);
    window.key[0] = MAPPED;
    window.key[1] = PLAIN;
    for (uint32_t i = 0; i < 200; i++) {
        window_turn(&window);
        CHECK(link_to(&sides[VISITOR], window.peer)->direct_count <= 2);
    }
    window_drain(&window);
    side_close(&sides[VISITOR]);
    side_close_with(&sides[OWNER], ids, 2);
}

static void test_mixed_window_does_not_wait(void **state)
{
    (void)state;
    setenv("OFIPY_SHM_ATTACH", "no", 1);
    run_processes(1, mixed_process, NULL);
    unsetenv("OFIPY_SHM_ATTACH");
}

/* The run of reachable operations that led to the change is over with it: later operations begin a new one. */
static void changed_process(struct shared *shared, uint32_t rank)
{
    static struct window window;
    static uint8_t plain[SIZE];
    static uint64_t value = 1;
    struct side sides[2];
    struct shm_link *link;
    uint32_t ids[2];

    (void)rank;
    window_open(&window, shared, sides);
    allocate_key(&sides[OWNER], SIZE, MAPPED, &ids[0]);
    ids[1] = register_key(&sides[OWNER], plain, SIZE, BOTH_WAYS, PLAIN);
    link = window_change(&window);
    window_drain(&window);
    for (uint32_t i = 0; i < 20; i++) {
        post(&sides[VISITOR], remote(OFP_WRITE, window.peer, &value, 8, PLAIN, 0));
        post(&sides[VISITOR], remote(OFP_WRITE, window.peer, &value, 8, MAPPED, 0));
        window.posted += 2;
        CHECK_EQUAL(link->unanswered, 2);
        window_drain(&window);
    }
    side_close(&sides[VISITOR]);
    side_close_with(&sides[OWNER], ids, 2);
}

static void test_mix_after_change_does_not_wait(void **state)
{
    (void)state;
    setenv("OFIPY_SHM_ATTACH", "no", 1);
    run_processes(1, changed_process, NULL);
    unsetenv("OFIPY_SHM_ATTACH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_window_becomes_direct),
        cmocka_unit_test(test_mixed_window_does_not_wait),
        cmocka_unit_test(test_mix_after_change_does_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
