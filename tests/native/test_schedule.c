/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm of every kind: each contribution exactly once, messages and bytes as the page of collectives says. */
#include "schedule_formulae.h"
#include "schedule_model.h"

#define SIZE_MAX_PLAYED 67u
#define PIECE_ELEMENTS (OFPI_PIPELINE_PIECE / ELEMENT)

/* --------------------------------------------------------------------------------------------------------- playing */

static bool is_reduction(enum ofp_collective_kind kind)
{
    return kind == OFP_COLLECTIVE_REDUCE || kind == OFP_COLLECTIVE_ALLREDUCE || kind == OFP_COLLECTIVE_REDUCE_SCATTER ||
           kind == OFP_COLLECTIVE_SCAN || kind == OFP_COLLECTIVE_EXSCAN;
}

/* Blocks in IN, and in OUT, of a member; 0: it has no such buffer. */
static uint32_t count_blocks(const struct ofpi_plan *plan, bool is_source)
{
    bool is_root = plan->rank == plan->root;

    switch (plan->kind) {
    case OFP_COLLECTIVE_BARRIER:
        return 0;
    case OFP_COLLECTIVE_BROADCAST:
        return !is_source;
    case OFP_COLLECTIVE_REDUCE:
        return is_source || is_root;
    case OFP_COLLECTIVE_GATHER:
        return is_source ? 1 : is_root ? plan->size : 0;
    case OFP_COLLECTIVE_SCATTER:
        return !is_source ? 1 : is_root ? plan->size : 0;
    case OFP_COLLECTIVE_ALLGATHER:
        return is_source ? 1 : plan->size;
    case OFP_COLLECTIVE_ALLTOALL:
        return plan->size;
    case OFP_COLLECTIVE_REDUCE_SCATTER:
        return is_source ? plan->size : 1;
    default:
        return 1;
    }
}

/* What a member contributes: its bit in a reduction, otherwise a value that says whose block for whom it is. */
static element_t contribution(const struct ofpi_plan *plan, uint32_t owner, uint32_t block, uint64_t index)
{
    if (is_reduction(plan->kind))
        return (element_t)1 << owner;
    return ((element_t)owner << 80) + ((element_t)block << 48) + index + 1;
}

static element_t expected_element(const struct ofpi_plan *plan, uint32_t block, uint64_t index)
{
    element_t all = plan->size == 128 ? ~(element_t)0 : ((element_t)1 << plan->size) - 1;

    switch (plan->kind) {
    case OFP_COLLECTIVE_SCAN:
        return ((element_t)2 << plan->rank) - 1;
    case OFP_COLLECTIVE_EXSCAN:
        return ((element_t)1 << plan->rank) - 1;
    case OFP_COLLECTIVE_BROADCAST:
        return contribution(plan, plan->root, 0, index);
    case OFP_COLLECTIVE_SCATTER:
        return contribution(plan, plan->root, plan->rank, index);
    case OFP_COLLECTIVE_ALLTOALL:
        return contribution(plan, block, plan->rank, index);
    case OFP_COLLECTIVE_GATHER:
    case OFP_COLLECTIVE_ALLGATHER:
        return contribution(plan, block, 0, index);
    default:
        return all;
    }
}

static uint64_t block_length(const struct ofpi_plan *plan, bool is_source, uint32_t block, uint64_t *offset)
{
    const uint64_t *places = is_source ? plan->sources : plan->targets;
    bool is_own = count_blocks(plan, is_source) == 1;
    uint64_t bytes = plan->count * plan->element;

    if (places && !is_own) {
        *offset = places[block];
        return places[block + 1] - places[block];
    }
    *offset = block * bytes;
    return plan->is_vector && is_own ? plan->own : bytes;
}

static void fill_buffers(struct member *member)
{
    const struct ofpi_plan *plan = &member->plan;
    uint32_t sources = count_blocks(plan, true), targets = count_blocks(plan, false);
    uint64_t offset, end = 0;
    bool is_broadcast = plan->kind == OFP_COLLECTIVE_BROADCAST;

    for (uint32_t i = 0; i < sources; i++)
        end += block_length(plan, true, i, &offset);
    member->memory[OFPI_IN] = calloc(1, end + 1);
    for (uint32_t i = 0; i < sources; i++)
        for (uint64_t j = 0, length = block_length(plan, true, i, &offset); j < length / ELEMENT; j++) {
            element_t value = contribution(plan, plan->rank, i, j);

            memcpy(member->memory[OFPI_IN] + offset + j * ELEMENT, &value, ELEMENT);
        }
    if (plan->in_place) {
        member->memory[OFPI_OUT] = member->memory[OFPI_IN];
        return;
    }
    end = 0;
    for (uint32_t i = 0; i < targets; i++)
        end += block_length(plan, false, i, &offset);
    member->memory[OFPI_OUT] = calloc(1, end + 1);
    for (uint64_t j = 0; is_broadcast && plan->rank == plan->root && j < plan->count; j++) {
        element_t value = contribution(plan, plan->root, 0, j);

        memcpy(member->memory[OFPI_OUT] + j * ELEMENT, &value, ELEMENT);
    }
}

static void check_result(const struct member *member)
{
    const struct ofpi_plan *plan = &member->plan;

    if (plan->kind == OFP_COLLECTIVE_EXSCAN && plan->rank == 0)
        return;
    for (uint32_t i = 0; i < count_blocks(plan, false); i++) {
        uint64_t offset, length = block_length(plan, false, i, &offset);

        for (uint64_t j = 0; j < length / ELEMENT; j++) {
            element_t value, expected = expected_element(plan, i, j);

            memcpy(&value, member->memory[OFPI_OUT] + offset + j * ELEMENT, ELEMENT);
            assert_memory_equal(&value, &expected, ELEMENT);
        }
    }
}

/* Play `members`, whose plans are filled, and check the results; frees their buffers. */
static struct totals play_and_check(struct member *members)
{
    uint32_t size = members[0].plan.size;
    struct totals totals;

    for (uint32_t rank = 0; rank < size; rank++)
        fill_buffers(&members[rank]);
    totals = play(members);
    for (uint32_t rank = 0; rank < size; rank++) {
        check_result(&members[rank]);
        if (!members[rank].plan.in_place)
            free(members[rank].memory[OFPI_OUT]);
        free(members[rank].memory[OFPI_IN]);
    }
    return totals;
}

/* -------------------------------------------------------------------------------------------------- kinds and sizes */

static const struct {
    enum ofp_collective_kind kind;
    enum ofpi_algorithm algorithm;
    bool is_rooted, can_be_in_place, is_for_powers;
    uint64_t exact; /* elements a member, a multiple of which has no empty part and no uneven one; 0: the size */
} ways[] = {
    {OFP_COLLECTIVE_BARRIER, OFPI_DISSEMINATION, false, false, false, 1},
    {OFP_COLLECTIVE_BROADCAST, OFPI_BINOMIAL, true, false, false, 1},
    {OFP_COLLECTIVE_BROADCAST, OFPI_PIPELINED_TREE, true, false, false, 1},
    {OFP_COLLECTIVE_REDUCE, OFPI_BINOMIAL, true, false, false, 1},
    {OFP_COLLECTIVE_REDUCE, OFPI_SCATTERED_REDUCE, true, false, false, 0},
    {OFP_COLLECTIVE_ALLREDUCE, OFPI_DOUBLING, false, true, false, 1},
    {OFP_COLLECTIVE_ALLREDUCE, OFPI_HALVING, false, true, false, 64},
    {OFP_COLLECTIVE_ALLREDUCE, OFPI_RING, false, true, false, 0},
    {OFP_COLLECTIVE_GATHER, OFPI_BINOMIAL, true, false, false, 1},
    {OFP_COLLECTIVE_GATHER, OFPI_LINEAR, true, false, false, 1},
    {OFP_COLLECTIVE_SCATTER, OFPI_BINOMIAL, true, false, false, 1},
    {OFP_COLLECTIVE_SCATTER, OFPI_LINEAR, true, false, false, 1},
    {OFP_COLLECTIVE_ALLGATHER, OFPI_BRUCK, false, false, false, 1},
    {OFP_COLLECTIVE_ALLGATHER, OFPI_RING, false, false, false, 1},
    {OFP_COLLECTIVE_ALLTOALL, OFPI_PAIRWISE, false, true, false, 1},
    {OFP_COLLECTIVE_REDUCE_SCATTER, OFPI_HALVING, false, false, true, 1},
    {OFP_COLLECTIVE_REDUCE_SCATTER, OFPI_PAIRWISE, false, false, false, 1},
    {OFP_COLLECTIVE_SCAN, OFPI_DOUBLING, false, true, false, 1},
    {OFP_COLLECTIVE_SCAN, OFPI_CHAIN, false, true, false, 1},
    {OFP_COLLECTIVE_EXSCAN, OFPI_DOUBLING, false, true, false, 1},
    {OFP_COLLECTIVE_EXSCAN, OFPI_CHAIN, false, true, false, 1},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static struct totals play_way(size_t way, uint32_t size, uint32_t root, uint64_t count, bool in_place)
{
    struct member *members = calloc(size, sizeof(*members));
    struct totals totals;

    assert_non_null(members);
    for (uint32_t rank = 0; rank < size; rank++)
        members[rank].plan = (struct ofpi_plan){.kind = ways[way].kind,
                                                .algorithm = ways[way].algorithm,
                                                .size = size,
                                                .rank = rank,
                                                .root = root,
                                                .element = ELEMENT,
                                                /* Every other member only: the rest must not notice. */
                                                .in_place = in_place && rank % 3 != 1,
                                                .count = count};
    totals = play_and_check(members);
    free(members);
    return totals;
}

/* Every way, size and root, with a vector that has parts of one length, and with ones that have uneven and empty parts. */
static void test_every_contribution_comes_once(void **state)
{
    (void)state;
    for (size_t way = 0; way < WAYS; way++) {
        for (uint32_t size = 1; size <= SIZE_MAX_PLAYED; size++) {
            uint64_t exact = ways[way].exact ? ways[way].exact : size;
            struct ofpi_plan plan = {.kind = ways[way].kind,
                                     .algorithm = ways[way].algorithm,
                                     .size = size,
                                     .element = ELEMENT,
                                     .count = exact};

            if (ways[way].is_for_powers && power_below(size) != size)
                continue;
            for (uint32_t root = 0; root < (ways[way].is_rooted ? size : 1); root++) {
                struct totals totals = play_way(way, size, root, exact, false);

                if (size > 1) {
                    assert_int_equal(totals.messages, expect_messages(&plan));
                    assert_int_equal(totals.bytes, expect_bytes(&plan));
                } else {
                    assert_int_equal(totals.messages, 0);
                }
            }
            for (uint64_t count = 0; count <= 3; count++)
                play_way(way, size, size / 2, count, ways[way].can_be_in_place);
            play_way(way, size, size - 1, 2 * size + 1, ways[way].can_be_in_place);
        }
    }
}

static void test_long_vectors_come_in_pieces(void **state)
{
    static const uint64_t counts[] = {PIECE_ELEMENTS, PIECE_ELEMENTS + 1, 3 * PIECE_ELEMENTS - 1};

    (void)state;
    for (size_t way = 0; way < WAYS; way++) {
        if (ways[way].algorithm != OFPI_PIPELINED_TREE && ways[way].algorithm != OFPI_CHAIN)
            continue;
        for (uint32_t size = 2; size <= 17; size += 3) {
            for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                struct ofpi_plan plan = {.kind = ways[way].kind,
                                         .algorithm = ways[way].algorithm,
                                         .size = size,
                                         .element = ELEMENT,
                                         .count = counts[i]};
                struct totals totals = play_way(way, size, size / 2, counts[i], false);

                if (ways[way].kind != OFP_COLLECTIVE_EXSCAN)
                    assert_int_equal(totals.messages, expect_messages(&plan));
                play_way(way, size, 0, counts[i], ways[way].can_be_in_place);
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------- vectors */

/* Lengths that differ, with empty blocks among them, the same for everybody; of an alltoall by both ranks. */
static uint64_t vector_length(uint32_t from, uint32_t to) { return (from * 7 + to * 3) % 5; }

struct vectors {
    uint64_t sources[SIZE_MAX_PLAYED + 1], targets[SIZE_MAX_PLAYED + 1];
};

static void fill_vectors(struct member *members, struct vectors *vectors, size_t way, uint32_t size, uint32_t root)
{
    bool is_alltoall = ways[way].kind == OFP_COLLECTIVE_ALLTOALL;

    for (uint32_t rank = 0; rank < size; rank++) {
        struct ofpi_plan *plan = &members[rank].plan;

        for (uint32_t i = 0; i < size; i++) {
            vectors[rank].sources[i + 1] =
                vectors[rank].sources[i] + ELEMENT * (is_alltoall ? vector_length(rank, i) : vector_length(i, 0));
            vectors[rank].targets[i + 1] =
                vectors[rank].targets[i] + ELEMENT * (is_alltoall ? vector_length(i, rank) : vector_length(i, 0));
        }
        *plan = (struct ofpi_plan){.kind = ways[way].kind,
                                   .algorithm = ways[way].algorithm,
                                   .size = size,
                                   .rank = rank,
                                   .root = root,
                                   .element = ELEMENT,
                                   .is_vector = true,
                                   .own = ELEMENT * vector_length(rank, 0),
                                   .sources = vectors[rank].sources,
                                   .targets = vectors[rank].targets};
        ofpi_plan_choose(plan);
        assert_int_equal(plan->algorithm, ways[way].algorithm);
    }
}

static void test_blocks_may_differ_in_length(void **state)
{
    (void)state;
    for (size_t way = 0; way < WAYS; way++) {
        bool is_vector = ways[way].algorithm == OFPI_LINEAR || ways[way].algorithm == OFPI_PAIRWISE ||
                         (ways[way].algorithm == OFPI_RING && ways[way].kind == OFP_COLLECTIVE_ALLGATHER);

        for (uint32_t size = 1; is_vector && size <= SIZE_MAX_PLAYED; size++) {
            struct member *members = calloc(size, sizeof(*members));
            struct vectors *vectors = calloc(size, sizeof(*vectors));

            assert_true(members && vectors);
            fill_vectors(members, vectors, way, size, size / 3);
            play_and_check(members);
            free(vectors);
            free(members);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- large jobs */

/* The messages of one member, without playing. */
static struct totals count_of_member(struct ofpi_plan *plan, uint32_t rank)
{
    struct ofpi_step steps[OFPI_STEPS_MAX];
    struct totals totals = {0};
    int count;

    plan->rank = rank;
    for (uint64_t round = 0; (count = ofpi_plan_build_round(plan, round, steps)) >= 0; round++) {
        for (int i = 0; i < count; i++) {
            assert_true(steps[i].kind == OFPI_STEP_COPY || steps[i].rank < plan->size);
            totals.messages += steps[i].kind == OFPI_STEP_SEND;
            totals.bytes += steps[i].kind == OFPI_STEP_SEND ? steps[i].length : 0;
        }
    }
    return totals;
}

static void test_formulae_hold_for_large_jobs(void **state)
{
    static const uint32_t sizes[] = {1000, 1024, 4095, 16384};

    (void)state;
    for (size_t way = 0; way < WAYS; way++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            uint32_t size = sizes[i];
            struct ofpi_plan plan = {.kind = ways[way].kind,
                                     .algorithm = ways[way].algorithm,
                                     .size = size,
                                     .root = size / 5,
                                     .element = ELEMENT,
                                     .count = ways[way].exact == 64 ? power_below(size) : ways[way].exact};
            struct totals totals = {0};

            if (!plan.count)
                plan.count = size;
            if (ways[way].is_for_powers && power_below(size) != size)
                continue;
            if (expect_messages(&plan) < 2000000) {
                for (uint32_t rank = 0; rank < size; rank++) {
                    struct totals own = count_of_member(&plan, rank);

                    totals.messages += own.messages;
                    totals.bytes += own.bytes;
                }
                assert_int_equal(totals.messages, expect_messages(&plan));
                assert_int_equal(totals.bytes, expect_bytes(&plan));
                continue;
            }
            /* As many messages as members squared: a sample of members, all of which send alike. */
            for (uint32_t rank = size / 128; rank < size && plan.kind != OFP_COLLECTIVE_REDUCE; rank += size / 64) {
                totals = count_of_member(&plan, rank);
                assert_int_equal(totals.messages, expect_messages(&plan) / size);
                assert_int_equal(totals.bytes, expect_bytes(&plan) / size);
            }
        }
    }
}

/* The choice depends on nothing that differs between members. */
static void test_all_members_choose_alike(void **state)
{
    (void)state;
    for (size_t way = 0; way < WAYS; way++) {
        for (uint64_t count = 0; count < 200000; count = 2 * count + 1) {
            struct ofpi_plan first = {.kind = ways[way].kind, .size = 8, .element = 8, .count = count};

            ofpi_plan_choose(&first);
            for (uint32_t rank = 1; rank < 8; rank++) {
                struct ofpi_plan other = first;

                other.rank = rank;
                other.in_place = rank % 2;
                ofpi_plan_choose(&other);
                assert_int_equal(other.algorithm, first.algorithm);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_contribution_comes_once), cmocka_unit_test(test_long_vectors_come_in_pieces),
        cmocka_unit_test(test_blocks_may_differ_in_length),   cmocka_unit_test(test_formulae_hold_for_large_jobs),
        cmocka_unit_test(test_all_members_choose_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
