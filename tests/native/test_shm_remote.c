/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA and atomics over shared memory: every way to a peer's memory, and that the direct ways need nobody there. */
#include "test_shm_memory.h"

/* ------------------------------------------------------------------------------------------------------------ ways */

static void use_key(struct side *side, uint32_t peer, uint64_t key, uint8_t *out, uint8_t *in)
{
    static const uint64_t lengths[] = {0, 1, 8, 96, 97, 4096, 20000, 100000, SIZE};

    for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        fill(out, lengths[i], i);
        memset(in, 0, SIZE);
        finish_one(side, remote(OFP_WRITE, peer, out, lengths[i], key, 1));
        finish_one(side, remote(OFP_READ, peer, in, lengths[i], key, 1));
        check_filled(in, lengths[i], i);
    }
}

/* The second half of one region and the first of another, the other way round at home. */
static void use_pieces(struct side *side, uint32_t peer, uint64_t first, uint64_t second, uint8_t *out, uint8_t *in)
{
    struct ofp_remote_segment there[2] = {{SIZE / 2, SIZE / 2, first}, {0, SIZE / 2, second}};
    struct ofp_segment here[3] = {{(uint64_t)(uintptr_t)out + 1000, SIZE - 1000, 0, 0},
                                  {(uint64_t)(uintptr_t)out + 500, 500, 0, 0},
                                  {(uint64_t)(uintptr_t)out, 500, 0, 0}};
    struct ofp_operation op = {.op = OFP_WRITE, .peer = peer, .segment_count = 3, .remote_segment_count = 2};

    op.segments = (uint64_t)(uintptr_t)here;
    op.remote_segments = (uint64_t)(uintptr_t)there;
    fill(out, SIZE, 7);
    finish_one(side, op);
    op = remote(OFP_READ, peer, in, SIZE, 0, 1);
    op.remote_segment_count = 2;
    op.remote_segments = (uint64_t)(uintptr_t)there;
    finish_one(side, op);
    CHECK(memcmp(in, out + 1000, SIZE - 1000) == 0);
    CHECK(memcmp(in + SIZE - 1000, out + 500, 500) == 0);
    CHECK(memcmp(in + SIZE - 500, out, 500) == 0);
}

/* More elements than one part takes, on every base. */
static void use_atomics(struct side *side, uint32_t peer, uint64_t key)
{
    static uint64_t operand[20000], compare[20000], fetched[20000];
    struct ofp_operation op;

    memset(operand, 0, sizeof(operand));
    finish_one(side, remote(OFP_WRITE, peer, operand, sizeof(operand), key, 1));
    for (uint64_t i = 0; i < 20000; i++)
        operand[i] = i;
    op = remote(OFP_ATOMIC, peer, operand, sizeof(operand), key, 1);
    op.atomic_op = OFP_ATOMIC_SUM;
    op.datatype = OFP_UINT64;
    finish_one(side, op);
    op.op = OFP_FETCH_ATOMIC;
    op.result_offset = (uint64_t)(uintptr_t)fetched;
    finish_one(side, op);
    for (uint64_t i = 0; i < 20000; i++) {
        CHECK_EQUAL(fetched[i], i);
        compare[i] = i % 2 ? 2 * i : 2 * i + 1;
    }
    op.op = OFP_COMPARE_ATOMIC;
    op.atomic_op = OFP_ATOMIC_CSWAP;
    op.compare_offset = (uint64_t)(uintptr_t)compare;
    finish_one(side, op);
    finish_one(side, remote(OFP_READ, peer, fetched, sizeof(fetched), key, 1));
    for (uint64_t i = 0; i < 20000; i++)
        CHECK_EQUAL(fetched[i], i % 2 ? i : 2 * i);
}

static void be_refused(struct side *side, uint32_t peer, uint8_t *out)
{
    struct ofp_remote_segment there[2] = {{0, 8, PLAIN}, {SIZE, 8, MAPPED}};
    struct ofp_operation beyond = remote(OFP_WRITE, peer, out, 8, MAPPED, 1), pieces = beyond;

    memset(out, 99, SIZE);
    finish_one(side, remote(OFP_WRITE, peer, "untouched", 9, PLAIN, 1));
    beyond.remote_offset = SIZE - 7;
    refuse(side, beyond, ERANGE);
    beyond.remote_offset = UINT64_MAX - 3;
    refuse(side, beyond, ERANGE);
    refuse(side, remote(OFP_WRITE, peer, out, 8, 777, 1), OFP_ENOKEY);
    refuse(side, remote(OFP_WRITE, peer, out, 8, SEALED, 1), EACCES);
    refuse(side, remote(OFP_WRITE, peer, out, SIZE, SEALED, 1), EACCES);
    pieces.length = 16;
    pieces.remote_segment_count = 2;
    pieces.remote_segments = (uint64_t)(uintptr_t)there;
    refuse(side, pieces, ERANGE);
    finish_one(side, remote(OFP_READ, peer, out, 9, PLAIN, 1));
    CHECK(memcmp(out, "untouched", 9) == 0);
}

static void visitor_of_all(struct side *side, uint32_t peer)
{
    uint8_t *out = malloc(SIZE), *in = malloc(SIZE);

    for (uint64_t round = 0; round < 2; round++) {
        use_key(side, peer, PLAIN, out, in);
        use_key(side, peer, MAPPED, out, in);
        use_pieces(side, peer, PLAIN, PLAIN, out, in);
        use_pieces(side, peer, MAPPED, PLAIN, out, in);
        use_atomics(side, peer, round ? MAPPED : PLAIN);
        be_refused(side, peer, out);
        map_what_there_is(side, peer);
    }
    free(out);
    free(in);
}

static void ways_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint32_t ids[3];
    uint8_t *plain = malloc(SIZE), *sealed = malloc(SIZE);

    side_open(&side, shared, rank);
    fill(sealed, SIZE, 3);
    ids[0] = register_key(&side, plain, SIZE, BOTH_WAYS, PLAIN);
    allocate_key(&side, SIZE, MAPPED, &ids[1]);
    ids[2] = register_key(&side, sealed, SIZE, OFP_ACCESS_REMOTE_READ, SEALED);
    meet_all(shared, 0);
    if (rank == VISITOR)
        visitor_of_all(&side, insert_rank(&side, shared, OWNER));
    meet_all_busy(&side, shared, 1);
    check_filled(sealed, SIZE, 3);
    endpoint_close(&side);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQUAL(ofp_region_close(side.domain, ids[i]), 0);
    CHECK_EQUAL(ofp_domain_close(side.domain), 0);
    print_log();
    free(plain);
    free(sealed);
}

static void test_every_way(void **state)
{
    (void)state;
    run_processes(2, ways_process, NULL);
    setenv("OFIPY_SHM_ATTACH", "no", 1);
    run_processes(2, ways_process, NULL);
    unsetenv("OFIPY_SHM_ATTACH");
    domain_info = 1;
    run_processes(2, ways_process, NULL);
    domain_info = 0;
}

/* ------------------------------------------------------------------------------------------------ without the owner */

/* The owner counts in the same word, with atomics of C. */
#define ADDS 50000
static void add_to_counter(struct side *side, uint32_t peer)
{
    uint64_t fetched, before = 0;

    for (uint32_t i = 0; i < ADDS; i++) {
        finish_one(side, add_one(peer, COUNTER, &fetched));
        CHECK(i == 0 || fetched > before);
        before = fetched;
    }
}

static void passive_process(struct shared *shared, uint32_t rank)
{
    static uint8_t plain[SIZE], out[SIZE], in[SIZE];
    struct side side;
    uint32_t ids[3];
    uint8_t *mapped;
    _Atomic uint64_t *counter;

    side_open(&side, shared, rank);
    ids[0] = register_key(&side, plain, SIZE, BOTH_WAYS, PLAIN);
    mapped = allocate_key(&side, SIZE, MAPPED, &ids[1]);
    counter = (_Atomic uint64_t *)(void *)allocate_key(&side, sizeof(*counter), COUNTER, &ids[2]);
    meet_all(shared, 0);
    if (rank == OWNER) {
        progress_until(&side, &shared->words[0], 1);
        for (uint32_t i = 0; i < ADDS; i++)
            ofp_fetch_add(counter, 1);
        /* Not one call of the library until the visitor is through. */
        wait_until(&shared->words[0], 2);
        check_filled(plain, SIZE, 1);
        check_filled(mapped, SIZE, 2);
        CHECK_EQUAL(ofp_load_acquire(counter), 2 * ADDS);
    } else {
        uint32_t peer = insert_rank(&side, shared, OWNER);

        map_what_there_is(&side, peer);
        ofp_store_release(&shared->words[0], 1);
        add_to_counter(&side, peer);
        for (uint32_t key = PLAIN; key <= MAPPED; key++) {
            fill(out, SIZE, key);
            finish_one(&side, remote(OFP_WRITE, peer, out, SIZE, key, 1));
            finish_one(&side, remote(OFP_READ, peer, in, SIZE, key, 1));
            check_filled(in, SIZE, key);
        }
        ofp_store_release(&shared->words[0], 2);
    }
    meet_all_busy(&side, shared, 1);
    side_close_with(&side, ids, 3);
}

static void test_direct_needs_nobody_there(void **state)
{
    (void)state;
    run_processes(2, passive_process, NULL);
}

/* A table has less room than a program may have regions. */
#define MANY 3000
static void many_process(struct shared *shared, uint32_t rank)
{
    static uint8_t bytes[MANY];
    static uint32_t ids[MANY + 1];
    struct side side;

    side_open(&side, shared, rank);
    allocate_key(&side, 1, MAPPED, &ids[MANY]);
    for (uint32_t i = 0; i < MANY; i++)
        ids[i] = register_key(&side, bytes + i, 1, BOTH_WAYS, 1000 + i);
    meet_all(shared, 0);
    if (rank == VISITOR) {
        uint32_t peer = insert_rank(&side, shared, OWNER);

        map_what_there_is(&side, peer);
        for (uint32_t i = 0; i < MANY; i++) {
            uint8_t byte = (uint8_t)(i % 251);

            finish_one(&side, remote(OFP_WRITE, peer, &byte, 1, 1000 + i, 1));
        }
    }
    meet_all_busy(&side, shared, 1);
    for (uint32_t i = 0; rank == OWNER && i < MANY; i++)
        CHECK_EQUAL(bytes[i], i % 251);
    side_close_with(&side, ids, MANY + 1);
}

static void test_more_regions_than_entries(void **state)
{
    (void)state;
    run_processes(2, many_process, NULL);
}

/* As many pieces as there may be on both sides, when a read has to prove as well that the peer's pid is still its own. */
static void most_pieces_process(struct shared *shared, uint32_t rank)
{
    static uint8_t plain[SIZE], in[SIZE], expected[SIZE];
    struct ofp_remote_segment there[OFP_SEGMENT_LIMIT];
    struct ofp_segment here[OFP_SEGMENT_LIMIT];
    struct ofp_operation op;
    struct side side;
    uint32_t id;

    side_open(&side, shared, rank);
    fill(plain, SIZE, rank == OWNER ? 5 : 6);
    id = register_key(&side, plain, SIZE, BOTH_WAYS, PLAIN);
    meet_all(shared, 0);
    if (rank == VISITOR) {
        uint32_t peer = insert_rank(&side, shared, OWNER);

        finish_one(&side, remote(OFP_READ, peer, in, 1, PLAIN, 1));
        fill(expected, SIZE, 5);
        op = remote(OFP_READ, peer, NULL, 7 * OFP_SEGMENT_LIMIT, 0, 1);
        op.segment_count = op.remote_segment_count = OFP_SEGMENT_LIMIT;
        op.segments = (uint64_t)(uintptr_t)here;
        op.remote_segments = (uint64_t)(uintptr_t)there;
        for (uint32_t i = 0; i < OFP_SEGMENT_LIMIT; i++) {
            here[i] = (struct ofp_segment){(uint64_t)(uintptr_t)&in[100 * i], 7, 0, 0};
            there[i] = (struct ofp_remote_segment){50 * i, 7, PLAIN};
        }
        link_to(&side, peer)->process->verified_at = 0;
        finish_one(&side, op);
        for (uint32_t i = 0; i < OFP_SEGMENT_LIMIT; i++)
            CHECK(memcmp(&in[100 * i], &expected[50 * i], 7) == 0);
    }
    meet_all_busy(&side, shared, 1);
    side_close_with(&side, &id, 1);
}

static void test_most_pieces(void **state)
{
    (void)state;
    run_processes(2, most_pieces_process, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way),
        cmocka_unit_test(test_direct_needs_nobody_there),
        cmocka_unit_test(test_more_regions_than_entries),
        cmocka_unit_test(test_most_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
