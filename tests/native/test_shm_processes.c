/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of every size and way between two processes. */
#include "test_shm_fixture.h"

static const uint64_t sizes[] = {0,    1,    8,     31,    32,    33,     95,      96,     97,
                                 4096, 8191, 16384, 16385, 65536, 262144, 1048576, 9437195};
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))
#define LARGEST 9437195

struct buffers {
    uint8_t *out, *in;
};

/* Every size there and back, twice; the second side answers with other bytes. */
static void exchange(struct side *side, uint32_t peer, uint32_t rank, struct buffers buffers)
{
    for (uint32_t round = 0; round < 2 * SIZE_COUNT; round++) {
        uint64_t size = sizes[round % SIZE_COUNT];
        struct ofp_completion row;

        memset(buffers.in, 0xee, size + 1);
        post(side, tagged(OFP_TRECV, peer, round, buffers.in, size, 1));
        if (rank == 1)
            row = completion_of(side, 1);
        fill(buffers.out, size, round * 2 + rank);
        post(side, tagged(OFP_TSEND, peer, round, buffers.out, size, 2));
        completion_of(side, 2);
        if (rank == 0)
            row = completion_of(side, 1);
        CHECK_EQUAL(row.length, size);
        CHECK_EQUAL(row.tag, round);
        CHECK_EQUAL(row.source, peer);
        check_filled(buffers.in, size, round * 2 + !rank);
        CHECK_EQUAL(buffers.in[size], 0xee);
    }
}

static void exchange_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    struct buffers buffers = {malloc(LARGEST + 1), malloc(LARGEST + 1)};

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    exchange(&side, insert_rank(&side, shared, !rank), rank, buffers);
    meet_all_busy(&side, shared, 1);
    side_close(&side);
    free(buffers.out);
    free(buffers.in);
}

static void test_exchange(void **state)
{
    (void)state;
    run_processes(2, exchange_process, NULL);
}

static void test_exchange_without_attach(void **state)
{
    (void)state;
    with_setting("OFIPY_SHM_ATTACH", "no", exchange_process);
}

static void test_exchange_with_one_bounce_buffer(void **state)
{
    (void)state;
    setenv("OFIPY_SHM_ATTACH", "no", 1);
    with_setting("OFIPY_SHM_BOUNCE_COUNT", "1", exchange_process);
    unsetenv("OFIPY_SHM_ATTACH");
}

static void test_exchange_in_a_short_ring(void **state)
{
    (void)state;
    setenv("OFIPY_SHM_ATTACH", "no", 1);
    with_setting("OFIPY_SHM_RING_SIZE", "16", exchange_process);
    unsetenv("OFIPY_SHM_ATTACH");
}

static void test_exchange_without_pidfd(void **state)
{
    (void)state;
    with_setting("OFIPY_SHM_PIDFD", "no", exchange_process);
}

/* ------------------------------------------------------------------------------------------- memory of the domain */

static void arena_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    struct buffers buffers;
    uint32_t regions[3];
    char text[OFP_TEXT_MAX];
    void *memory[3];

    side_open(&side, shared, rank);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(region_allocate(side.domain, i == 2 ? 5000 : LARGEST + 1, OFP_ACCESS_SEND | OFP_ACCESS_RECV,
                                    &regions[i], &memory[i], text),
                    0);
    /* The middle one leaves a hole, which begins with zeros when it is used again. */
    buffers.in = memory[0];
    memset(memory[1], 0xff, LARGEST);
    CHECK_EQUAL(ofp_region_close(side.domain, regions[1]), 0);
    CHECK_EQUAL(region_allocate(side.domain, LARGEST + 1, OFP_ACCESS_SEND, &regions[1], &memory[1], text), 0);
    buffers.out = memory[1];
    for (uint64_t i = 0; i < LARGEST; i++)
        CHECK_EQUAL(buffers.out[i], 0);
    meet_all(shared, 0);
    exchange(&side, insert_rank(&side, shared, !rank), rank, buffers);
    meet_all_busy(&side, shared, 1);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(ofp_region_close(side.domain, regions[i]), 0);
    side_close(&side);
}

static void test_exchange_of_domain_memory(void **state)
{
    (void)state;
    run_processes(2, arena_process, NULL);
}

/* Until the arena is mapped the messages travel as fragments. */
static void test_exchange_of_domain_memory_without_attach(void **state)
{
    (void)state;
    with_setting("OFIPY_SHM_ATTACH", "no", arena_process);
}

/* -------------------------------------------------------------------------------------------------- several segments */

#define PIECES OFP_SEGMENT_LIMIT

/* `length` bytes in pieces of different lengths, some of them empty. */
static void cut(struct ofp_segment *segments, uint8_t *buffer, uint64_t length)
{
    uint64_t offset = 0;

    for (uint64_t i = 0; i < PIECES; i++) {
        uint64_t part = i == 3 ? 0 : i == PIECES - 1 ? length - offset : (length - offset) / (PIECES - i) * (i % 3);

        segments[i] = (struct ofp_segment){.offset = (uint64_t)(uintptr_t)buffer + offset, .length = part};
        offset += part;
    }
}

static void segments_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint8_t *buffer = malloc(LARGEST + 1);
    uint32_t peer;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    for (uint32_t round = 0; round < SIZE_COUNT; round++) {
        struct ofp_segment segments[PIECES];
        struct ofp_operation op = tagged(rank ? OFP_TRECV : OFP_TSEND, peer, round, NULL, 0, 7);

        cut(segments, buffer, sizes[round]);
        op.segments = (uint64_t)(uintptr_t)segments;
        op.segment_count = PIECES;
        if (rank == 0)
            fill(buffer, sizes[round], round);
        post(&side, op);
        CHECK_EQUAL(completion_of(&side, 7).length, sizes[round]);
        if (rank == 1)
            check_filled(buffer, sizes[round], round);
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
    free(buffer);
}

static void test_segments(void **state)
{
    (void)state;
    run_processes(2, segments_process, NULL);
}

static void test_segments_without_attach(void **state)
{
    (void)state;
    with_setting("OFIPY_SHM_ATTACH", "no", segments_process);
}

/* ------------------------------------------------------------------------------------------------ completion levels */

static void levels_process(struct shared *shared, uint32_t rank)
{
    static const uint64_t lengths[] = {0, 8, 96, 97, 5000, 100000};
    static const uint64_t levels[] = {OFP_TRANSMIT_COMPLETE, OFP_DELIVERY_COMPLETE, OFP_MATCH_COMPLETE};
    struct side side;
    uint8_t *buffer = malloc(100000);
    uint32_t peer, round = 0;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    for (uint32_t i = 0; i < 6; i++) {
        for (uint32_t k = 0; k < 3; k++, round++) {
            struct ofp_operation op = tagged(rank ? OFP_TRECV : OFP_TSEND, peer, round, buffer, lengths[i], 5);
            struct ofp_completion row;

            if (rank == 0) {
                fill(buffer, lengths[i], round);
                op.flags = levels[k] | OFP_REMOTE_CQ_DATA;
                op.data = round + 77;
                post(&side, op);
                if (levels[k] == OFP_MATCH_COMPLETE) {
                    /* Nothing matches it yet, so it cannot be complete, however long we look. */
                    for (int look = 0; look < 50; look++)
                        CHECK_EQUAL(ofp_cq_read(side.cq, &row, 1), 0);
                    ofp_store_release(&shared->words[round], 1);
                }
                completion_of(&side, 5);
                continue;
            }
            if (levels[k] == OFP_MATCH_COMPLETE)
                progress_until(&side, &shared->words[round], 1);
            post(&side, op);
            row = completion_of(&side, 5);
            CHECK_EQUAL(row.length, lengths[i]);
            CHECK_EQUAL(row.data, round + 77);
            CHECK(row.flags & OFP_COMPLETED_REMOTE_CQ_DATA);
            check_filled(buffer, lengths[i], round);
        }
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
    free(buffer);
}

static void test_completion_levels(void **state)
{
    (void)state;
    run_processes(2, levels_process, NULL);
}

/* A receive that is shorter than the message takes its beginning, by every way. */
static void truncation_process(struct shared *shared, uint32_t rank)
{
    static const uint64_t lengths[] = {50, 5000, 300000};
    struct side side;
    uint8_t *buffer = malloc(300000);
    uint32_t peer;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    for (uint32_t i = 0; i < 6; i++) {
        uint64_t length = lengths[i / 2], room = i % 2 ? length / 2 : 0;

        if (rank == 0) {
            fill(buffer, length, i);
            post(&side, tagged(OFP_TSEND, peer, i, buffer, length, 5));
            completion_of(&side, 5);
        } else {
            struct ofp_completion row;

            memset(buffer, 0xee, 300000);
            post(&side, tagged(OFP_TRECV, peer, i, buffer, room, 5));
            row = next_completion(&side);
            CHECK_EQUAL(row.error, OFP_ETRUNC);
            CHECK_EQUAL(row.length, length);
            check_filled(buffer, room, i);
            CHECK_EQUAL(buffer[room], 0xee);
        }
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
    free(buffer);
}

static void test_truncation(void **state)
{
    (void)state;
    run_processes(2, truncation_process, NULL);
}

static void test_truncation_without_attach(void **state)
{
    (void)state;
    with_setting("OFIPY_SHM_ATTACH", "no", truncation_process);
}

/* ------------------------------------------------------------------------------------------------------------ inject */

/* The buffer is overwritten as soon as the post returns, and more is sent than all rings and buffers hold. */
static void inject_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint8_t buffer[4096];
    uint32_t peer;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    for (uint32_t i = 0; i < 3000; i++) {
        uint64_t length = i % 3 ? 40 : 4096;
        struct ofp_operation op = tagged(rank ? OFP_TRECV : OFP_TSEND, peer, i, buffer, length, i);

        if (rank == 0) {
            fill(buffer, length, i);
            op.flags = OFP_INJECT;
            post(&side, op);
            memset(buffer, 0xdd, sizeof(buffer));
        } else {
            post(&side, op);
            completion_of(&side, i);
            check_filled(buffer, length, i);
        }
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
}

static void test_inject(void **state)
{
    (void)state;
    run_processes(2, inject_process, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_exchange_without_attach),
        cmocka_unit_test(test_exchange_with_one_bounce_buffer),
        cmocka_unit_test(test_exchange_in_a_short_ring),
        cmocka_unit_test(test_exchange_without_pidfd),
        cmocka_unit_test(test_exchange_of_domain_memory),
        cmocka_unit_test(test_exchange_of_domain_memory_without_attach),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_segments_without_attach),
        cmocka_unit_test(test_completion_levels),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_truncation_without_attach),
        cmocka_unit_test(test_inject),
    };

    cmocka_set_test_filter(getenv("TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
