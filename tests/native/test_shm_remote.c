/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA and atomics over shared memory: every way to a peer's memory, that the direct ways need nobody there, and the
 * agreement between who reaches into a region and who closes it.
 */
#include "link/table.h"
#include "shm.h"
#include "test_shm_fixture.h"

enum { OWNER, VISITOR };
enum { PLAIN = 1, MAPPED = 2, SEALED = 3 };
#define SIZE 204800 /* whole pages */

/* --------------------------------------------------------------------------------------------------------- set-up */

static uint32_t register_key(struct side *side, uint8_t *base, uint64_t length, uint32_t access, uint64_t key)
{
    struct ofp_region_attr attr = {.base = base, .length = length, .access = access, .has_key = 1, .key = key};
    struct ofp_region_handle handle;

    CHECK_EQUAL(ofp_region_register(side->domain, &attr, &handle), 0);
    return handle.id;
}

static uint8_t *allocate_key(struct side *side, uint64_t length, uint64_t key, uint32_t *id)
{
    struct ofp_region_attr attr = {.length = length, .access = BOTH_WAYS, .has_key = 1, .key = key};
    struct ofp_region_handle handle;
    char text[OFP_TEXT_MAX];

    CHECK_EQUAL(ofp_region_allocate(side->domain, &attr, &handle, text, sizeof(text)), 0);
    *id = handle.id;
    return handle.base;
}

static struct shm_link *link_to(struct side *side, uint32_t peer)
{
    const struct shm_endpoint *endpoint = shm_endpoint_of(side->endpoint);

    for (uint32_t i = 1; i < endpoint->link_capacity; i++)
        if (endpoint->links[i] && endpoint->links[i]->peer && endpoint->links[i]->peer->index == peer)
            return endpoint->links[i];
    return NULL;
}

static void finish_one(struct side *side, struct ofp_operation op)
{
    op.context = 1;
    post(side, op);
    CHECK_EQUAL(next_completion(side).error, 0);
}

/* Until the peer's table is here, and the arena that a region lies in. */
static void map_what_there_is(struct side *side, uint32_t peer)
{
    uint64_t deadline = now_ns() + PATIENCE;
    struct shm_target target;
    uint8_t byte;

    for (;;) {
        struct shm_link *link;
        const struct shm_region_entry *table;

        finish_one(side, remote(OFP_READ, peer, &byte, 1, MAPPED, 1));
        link = link_to(side, peer);
        table = shm_table_of(link);
        if (table && shm_table_find(table, MAPPED, &target) && target.arena &&
            shm_foreign_memory(link, target.arena, target.arena_offset, target.length))
            return;
        CHECK(now_ns() < deadline);
    }
}

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

static void refuse(struct side *side, struct ofp_operation op, int reason)
{
    struct ofp_completion row;

    post(side, op);
    row = next_completion(side);
    CHECK_EQUAL(row.error, OFP_EREMOTE);
    CHECK_EQUAL(row.provider_error, reason);
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

static void passive_process(struct shared *shared, uint32_t rank)
{
    static uint8_t plain[SIZE], out[SIZE], in[SIZE];
    struct side side;
    uint32_t ids[2];
    uint8_t *mapped;

    side_open(&side, shared, rank);
    ids[0] = register_key(&side, plain, SIZE, BOTH_WAYS, PLAIN);
    mapped = allocate_key(&side, SIZE, MAPPED, &ids[1]);
    meet_all(shared, 0);
    if (rank == OWNER) {
        progress_until(&side, &shared->words[0], 1);
        /* Not one call of the library until the visitor is through. */
        wait_until(&shared->words[0], 2);
        check_filled(plain, SIZE, 1);
        check_filled(mapped, SIZE, 2);
    } else {
        uint32_t peer = insert_rank(&side, shared, OWNER);

        map_what_there_is(&side, peer);
        ofp_store_release(&shared->words[0], 1);
        for (uint32_t key = PLAIN; key <= MAPPED; key++) {
            fill(out, SIZE, key);
            finish_one(&side, remote(OFP_WRITE, peer, out, SIZE, key, 1));
            finish_one(&side, remote(OFP_READ, peer, in, SIZE, key, 1));
            check_filled(in, SIZE, key);
        }
        ofp_store_release(&shared->words[0], 2);
    }
    meet_all_busy(&side, shared, 1);
    side_close_with(&side, ids, 2);
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

/* ------------------------------------------------------------------------------------------------------------- visits */

enum ending { LEAVES, DIES, STAYS };
static enum ending ending;
static bool closes_endpoint;

static void visiting_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint32_t id;
    uint64_t began, took;

    side_open(&side, shared, rank);
    allocate_key(&side, SIZE, MAPPED, &id);
    meet_all(shared, 0);
    if (rank == OWNER) {
        progress_until(&side, &shared->words[0], 1);
        began = now_ns();
        ofp_store_release(&shared->words[0], 2);
        if (closes_endpoint)
            endpoint_close(&side);
        CHECK_EQUAL(ofp_region_close(side.domain, id), 0);
        took = now_ns() - began;
        /* A visitor is waited for; one that is dead is not, and one that stays not for ever. */
        CHECK(ending != LEAVES || took >= SECONDS / 5);
        CHECK(ending == STAYS || closes_endpoint || took < SECONDS * 3 / 2);
        ofp_store_release(&shared->words[0], 3);
        if (!closes_endpoint)
            endpoint_close(&side);
        CHECK_EQUAL(ofp_domain_close(side.domain), 0);
    } else {
        uint32_t peer = insert_rank(&side, shared, OWNER);
        struct shm_target target;
        struct shm_link *link;

        map_what_there_is(&side, peer);
        link = link_to(&side, peer);
        CHECK(shm_table_find(shm_table_of(link), MAPPED, &target));
        CHECK(shm_visit(link, &target));
        ofp_store_release(&shared->words[0], 1);
        wait_until(&shared->words[0], 2);
        usleep(200000);
        if (ending == DIES)
            raise(SIGKILL);
        if (ending == STAYS)
            wait_until(&shared->words[0], 3);
        /* The region is closed, or about to be: what was moved does not count, and nobody enters any more. */
        CHECK(!shm_visit_end(link, &target) || closes_endpoint);
        CHECK(!shm_visit(link, &target));
        side_close_with(&side, &id, 1);
    }
}

static void test_closing_meets_a_visitor(void **state)
{
    static const int dies[] = {0, KILLED};

    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        closes_endpoint = kind;
        for (ending = LEAVES; ending <= STAYS; ending++)
            run_processes(2, visiting_process, ending == DIES ? dies : NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way),
        cmocka_unit_test(test_direct_needs_nobody_there),
        cmocka_unit_test(test_more_regions_than_entries),
        cmocka_unit_test(test_closing_meets_a_visitor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
