/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between two processes that nobody has asked for yet, far more of them than there is room for. */
#include "test_shm_fixture.h"

#define UNEXPECTED 200

/*
 * Messages that nobody has asked for, far beyond the bound; then one of another tag gets through, and all of them come out
 * in an order other than that of their sending.
 */
static void unexpected_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    static const uint64_t lengths[] = {10, 80, 90, 5000, 16000, 40000};
    uint8_t *buffers = malloc(UNEXPECTED * 40000ul);
    char service[40];
    uint32_t peer;

    service_of(shared, rank, service);
    domain_open(&side);
    endpoint_open(&side, service, 100000);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    if (rank == 0) {
        for (uint32_t i = 0; i < UNEXPECTED; i++) {
            fill(buffers + i * 40000ul, lengths[i % 6], i);
            post(&side, tagged(OFP_TSEND, peer, i, buffers + i * 40000ul, lengths[i % 6], 1000 + i));
        }
        post(&side, tagged(OFP_TSEND, peer, 999, "other", 5, 1));
        for (uint32_t done = 0; done < UNEXPECTED + 1; done++)
            CHECK_EQUAL(next_completion(&side).error, 0);
    } else {
        char other[8];

        post(&side, tagged(OFP_TRECV, peer, 999, other, sizeof(other), 1));
        CHECK_EQUAL(completion_of(&side, 1).length, 5);
        for (uint32_t i = UNEXPECTED; i-- > 0;) {
            struct ofp_completion row;

            post(&side, tagged(OFP_TRECV, peer, i, buffers, 40000, 2));
            row = completion_of(&side, 2);
            CHECK_EQUAL(row.length, lengths[i % 6]);
            check_filled(buffers, row.length, i);
        }
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
    free(buffers);
}

static void test_unexpected_beyond_the_bound(void **state)
{
    (void)state;
    run_processes(2, unexpected_process, NULL);
}

static void test_unexpected_beyond_the_bound_without_attach(void **state)
{
    (void)state;
    with_setting("OFIPY_SHM_ATTACH", "no", unexpected_process);
}

/*
 * The receiver looks at nothing before the sender has posted all. What it then asks for first is the last message, which
 * needs bounce buffers, while the others hold theirs until they are asked for.
 */
static void full_buffers_process(struct shared *shared, uint32_t rank)
{
    enum { COUNT = 150, MEDIUM = 9000, LONG = 100000 };
    struct side side;
    uint8_t *buffer = malloc(LONG);
    char service[40];
    uint32_t peer;

    service_of(shared, rank, service);
    domain_open(&side);
    endpoint_open(&side, service, 1000);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    fill(buffer, LONG, 3);
    if (rank == 0) {
        /* Connect first, so that the buffers are taken and not the backlog's memory. */
        post(&side, tagged(OFP_TSEND, peer, 500, buffer, 8, 1));
        CHECK_EQUAL(completion_of(&side, 1).error, 0);
        for (uint32_t i = 0; i < COUNT; i++)
            post(&side, tagged(OFP_TSEND, peer, i, buffer, MEDIUM, 2));
        post(&side, tagged(OFP_TSEND, peer, 999, buffer, LONG, 2));
        ofp_store_release(&shared->words[0], 1);
        for (uint32_t done = 0; done < COUNT + 1; done++)
            CHECK_EQUAL(next_completion(&side).error, 0);
    } else {
        post(&side, tagged(OFP_TRECV, peer, 500, buffer, 8, 1));
        CHECK_EQUAL(completion_of(&side, 1).length, 8);
        while (!ofp_load_acquire(&shared->words[0]))
            sched_yield();
        for (uint32_t i = 0; i <= COUNT; i++) {
            uint64_t length = i ? MEDIUM : LONG;

            memset(buffer, 0, LONG);
            post(&side, tagged(OFP_TRECV, peer, i ? i - 1 : 999, buffer, LONG, 2));
            CHECK_EQUAL(completion_of(&side, 2).length, length);
            check_filled(buffer, length, 3);
        }
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
    free(buffer);
}

static void test_full_buffers(void **state)
{
    (void)state;
    run_processes(2, full_buffers_process, NULL);
}

static void test_full_buffers_without_attach(void **state)
{
    (void)state;
    with_setting("OFIPY_SHM_ATTACH", "no", full_buffers_process);
}

/* Not even announcements are kept beyond their bound: the ring holds the rest, until receives make room. */
static void stalled_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint8_t *buffer = malloc(20000);
    uint32_t peer;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    for (uint32_t i = 0; i < 300; i++) {
        uint64_t length = i % 3 == 0 ? 8 : i % 3 == 1 ? 90 : 20000;

        if (rank == 0) {
            /* Whatever is longer than a slot stays at the sender, which has but one memory for all. */
            fill(buffer, length, 5);
            post(&side, tagged(OFP_TSEND, peer, i, buffer, length, 1));
            continue;
        }
        if (i == 0)
            progress_until(&side, &shared->words[0], 1);
        post(&side, tagged(OFP_TRECV, peer, i, buffer, 20000, 1));
        CHECK_EQUAL(completion_of(&side, 1).length, length);
        check_filled(buffer, length, 5);
    }
    if (rank == 0) {
        ofp_store_release(&shared->words[0], 1);
        for (uint32_t i = 0; i < 300; i++)
            CHECK_EQUAL(next_completion(&side).error, 0);
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
    free(buffer);
}

static void test_stalled_ring(void **state)
{
    (void)state;
    setenv("OFIPY_UNEXPECTED_SIZE", "1000", 1);
    with_setting("OFIPY_ANNOUNCEMENTS", "10", stalled_process);
    unsetenv("OFIPY_UNEXPECTED_SIZE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unexpected_beyond_the_bound),
        cmocka_unit_test(test_unexpected_beyond_the_bound_without_attach),
        cmocka_unit_test(test_full_buffers),
        cmocka_unit_test(test_full_buffers_without_attach),
        cmocka_unit_test(test_stalled_ring),
    };

    cmocka_set_test_filter(getenv("TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
