/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives as operations of the core: posted, deferred, requested, prepared. */
#include "collective_fixture.h"

enum { SIZE = 3, BLOCK = 2 };

struct vectors {
    int64_t sources[SIZE][SIZE * BLOCK], targets[SIZE][SIZE * BLOCK];
};

static void fill_vectors(struct vectors *vectors)
{
    for (int64_t rank = 0; rank < SIZE; rank++)
        for (int64_t i = 0; i < SIZE * BLOCK; i++) {
            vectors->sources[rank][i] = 100 * rank + i;
            vectors->targets[rank][i] = -1;
        }
}

/* The record of a member's next collective. */
static struct ofp_operation record(const struct team *team, uint32_t rank, uint16_t code, struct vectors *vectors,
                                   uint64_t length, uint64_t context)
{
    return (struct ofp_operation){.op = code,
                                  .atomic_op = OFP_ATOMIC_SUM,
                                  .datatype = OFP_INT64,
                                  .peer = team->members[rank].number,
                                  .tag = 1,
                                  .context = context,
                                  .offset = vectors ? (uint64_t)(uintptr_t)vectors->sources[rank] : 0,
                                  .length = length,
                                  .result_offset = vectors ? (uint64_t)(uintptr_t)vectors->targets[rank] : 0,
                                  .endpoint = team->members[rank].endpoint->id};
}

static struct ofp_completion team_read(struct team *team)
{
    struct ofp_completion row = {0};
    uint64_t deadline = ofpi_clock_read() + 30000000000ull;

    while (ofp_cq_read(team->cq, &row, 1) != 1) {
        ofp_domain_progress(team->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    return row;
}

/* Every member's completion, in any order. */
static void expect_completions(struct team *team, int error)
{
    bool seen[SIZE] = {false};

    for (int i = 0; i < SIZE; i++) {
        struct ofp_completion row = team_read(team);

        assert_true(row.context < SIZE && !seen[row.context]);
        seen[row.context] = true;
        assert_int_equal(row.error, error);
        assert_int_equal(row.flags, OFP_COMPLETED_COLLECTIVE);
        assert_int_equal(row.source, team->members[row.context].number);
        assert_int_equal(row.endpoint, team->members[row.context].endpoint->id);
    }
}

static void post_each(struct team *team, uint16_t code, struct vectors *vectors, uint64_t length)
{
    for (uint32_t rank = 0; rank < SIZE; rank++) {
        struct ofp_operation op = record(team, rank, code, vectors, length, rank);

        assert_int_equal(ofp_post(team->members[rank].endpoint, &op, 1), 1);
    }
    expect_completions(team, 0);
}

/* ----------------------------------------------------------------------------------------------------------- results */

/* What a rank has at place `i` of the target after the collective; -1: nothing. Root is 1. */
static int64_t compute_expected(uint16_t code, int64_t rank, int64_t i)
{
    int64_t block = i / BLOCK, place = i % BLOCK;

    switch (code) {
    case OFP_BROADCAST:
        return 100 + i;
    case OFP_ALLTOALL:
        return 100 * block + BLOCK * rank + place;
    case OFP_ALLREDUCE:
        return 300 + 3 * i;
    case OFP_ALLGATHER:
        return 100 * block + place;
    case OFP_REDUCE_SCATTER:
        return i < BLOCK ? 300 + 3 * (BLOCK * rank + i) : -1;
    case OFP_REDUCE:
        return rank == 1 ? 300 + 3 * i : -1;
    case OFP_SCATTER:
        return i < BLOCK ? 100 + BLOCK * rank + i : -1;
    case OFP_GATHER:
        return rank == 1 ? 100 * block + place : -1;
    default:
        return -1;
    }
}

static void test_the_nine_collectives(void **state)
{
    struct vectors vectors;
    struct team team;

    (void)state;
    team_open(&team, SIZE);
    for (uint16_t code = OFP_BARRIER; code <= OFP_GATHER; code++) {
        bool is_whole = code == OFP_BROADCAST || code == OFP_ALLREDUCE || code == OFP_REDUCE;
        uint64_t count = code == OFP_BARRIER ? 0 : is_whole ? SIZE * BLOCK : BLOCK;

        fill_vectors(&vectors);
        post_each(&team, code, &vectors, count * sizeof(int64_t));
        for (int64_t rank = 0; rank < SIZE; rank++)
            for (int64_t i = 0; i < SIZE * BLOCK; i++)
                assert_int_equal(code == OFP_BROADCAST ? vectors.sources[rank][i] : vectors.targets[rank][i],
                                 compute_expected(code, rank, i));
    }
    team_close(&team);
}

/* A member posts the operation, the others start the same collective by a call, as a request, or prepared. */
static void test_members_start_it_in_different_ways(void **state)
{
    struct vectors vectors;
    struct team team;
    struct ofp_operation op;
    ofp_request_t call, request, prepared;

    (void)state;
    team_open(&team, SIZE);
    op = record(&team, 2, OFP_ALLREDUCE, &vectors, sizeof(int64_t), 2);
    fill_vectors(&vectors);
    prepared = ofp_prepare(team.members[2].endpoint, &op);
    assert_true(prepared > 0);
    for (int run = 0; run < 3; run++) {
        fill_vectors(&vectors);
        call = member_start(&team, 0, reduction(OFP_COLLECTIVE_ALLREDUCE, vectors.sources[0], vectors.targets[0], 1));
        op = record(&team, 1, OFP_ALLREDUCE, &vectors, sizeof(int64_t), 1);
        request = ofp_request_start(team.members[1].endpoint, &op, 0, 0);
        assert_int_equal(ofp_start(prepared, 0, 0), 0);
        assert_int_equal(ofp_start(prepared, 0, 0), -EBUSY);
        assert_int_equal(team_await(&team, call), 0);
        assert_int_equal(team_await(&team, request), 0);
        assert_int_equal(team_await(&team, prepared), 0);
        for (int rank = 0; rank < SIZE; rank++)
            assert_int_equal(vectors.targets[rank][0], 300);
    }
    assert_int_equal(ofp_request_abandon(prepared, false), 0);
    team_close(&team);
}

/* ---------------------------------------------------------------------------------------------------------- triggered */

/* A chain without the program: a sum when the counter says so, then a barrier that the sum's own counter starts. */
static void test_a_chain_of_deferred_collectives(void **state)
{
    struct ofp_counter_attr attr = {0};
    struct ofp_counter *ready, *summed[SIZE];
    struct vectors vectors;
    struct team team;
    uint64_t id, value;

    (void)state;
    team_open(&team, SIZE);
    fill_vectors(&vectors);
    assert_int_equal(ofp_counter_open(team.domain, &attr, &ready), 0);
    for (uint32_t rank = 0; rank < SIZE; rank++) {
        struct ofp_operation second = record(&team, rank, OFP_BARRIER, NULL, 0, rank);

        assert_int_equal(ofp_counter_open(team.domain, &attr, &summed[rank]), 0);
        assert_int_equal(ofp_post_after(team.members[rank].endpoint, &second, 1, summed[rank], 1), 1);
        assert_int_equal(
            ofp_work_queue(team.domain,
                           &(struct ofp_deferred_work){.kind = OFP_WORK_OPERATION,
                                                       .counter = ready,
                                                       .threshold = 7,
                                                       .target = summed[rank],
                                                       .operation = record(&team, rank, OFP_ALLREDUCE, &vectors,
                                                                           BLOCK * sizeof(int64_t), rank)},
                           &id),
            0);
    }
    assert_int_equal(ofp_counter_add(ready, 6), 0);
    for (int i = 0; i < 50; i++)
        ofp_domain_progress(team.domain);
    assert_int_equal(vectors.targets[0][0], -1);
    assert_int_equal(ofp_counter_add(ready, 1), 0);
    for (int i = 0; i < 2; i++)
        expect_completions(&team, 0);
    for (uint32_t rank = 0; rank < SIZE; rank++) {
        assert_int_equal(vectors.targets[rank][1], 303);
        assert_int_equal(ofp_counter_read(summed[rank], &value), 0);
        assert_int_equal(value, 1);
        assert_int_equal(ofp_counter_close(summed[rank]), 0);
    }
    assert_int_equal(ofp_counter_close(ready), 0);
    team_close(&team);
}

/* Deferred collectives of a group that runs as many as may wait for a place, and start in order. */
static void test_deferred_collectives_wait_for_a_place(void **state)
{
    enum { RUNNING = 64, MORE = 3 };
    struct ofp_counter_attr attr = {0};
    struct ofp_counter *counter;
    ofp_request_t requests[RUNNING];
    struct ofp_operation op;
    struct team team;

    (void)state;
    team_open(&team, 2);
    assert_int_equal(ofp_counter_open(team.domain, &attr, &counter), 0);
    for (int i = 0; i < RUNNING; i++)
        requests[i] = member_start(&team, 0, barrier());
    op = record(&team, 0, OFP_BARRIER, NULL, 0, 0);
    assert_int_equal(ofp_post(team.members[0].endpoint, &op, 1), -EAGAIN);
    assert_int_equal(ofp_request_start(team.members[0].endpoint, &op, 0, 1000000000), -EAGAIN);
    for (uint64_t i = 0; i < MORE; i++) {
        op.context = i;
        assert_int_equal(ofp_post_after(team.members[0].endpoint, &op, 1, counter, 1), 1);
    }
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    for (int i = 0; i < RUNNING + MORE; i++)
        assert_int_equal(team_await(&team, member_start(&team, 1, barrier())), 0);
    for (int i = 0; i < RUNNING; i++)
        assert_int_equal(team_await(&team, requests[i]), 0);
    for (uint64_t i = 0; i < MORE; i++)
        assert_int_equal(team_read(&team).context, i);
    assert_int_equal(ofp_counter_close(counter), 0);
    team_close(&team);
}

/* -------------------------------------------------------------------------------------------------------------- ends */

static void test_wrong_records_start_nothing(void **state)
{
    struct ofp_counter_attr attr = {0};
    struct ofp_counter *counter;
    struct vectors vectors;
    struct team team;
    static const struct {
        uint16_t code;
        uint32_t peer;
        uint64_t tag, length, flags;
        uint32_t region, segments;
        uint8_t atomic_op;
        int error;
    } wrong[] = {
        {OFP_ALLREDUCE, 12345, 0, 8, 0, 0, 0, OFP_ATOMIC_SUM, -ENOENT},
        {OFP_BARRIER, OFP_PEER_ANY, 0, 0, 0, 0, 0, 0, -ENOENT},
        {OFP_REDUCE, 0, SIZE, 8, 0, 0, 0, OFP_ATOMIC_SUM, -EINVAL},
        {OFP_REDUCE, 0, UINT64_C(1) << 32, 8, 0, 0, 0, OFP_ATOMIC_SUM, -EINVAL},
        {OFP_ALLREDUCE, 0, 0, 9, 0, 0, 0, OFP_ATOMIC_SUM, -EINVAL},
        {OFP_ALLREDUCE, 0, 0, 8, OFP_INJECT, 0, 0, OFP_ATOMIC_SUM, -EINVAL},
        {OFP_ALLREDUCE, 0, 0, 8, 0, 0, 0, OFP_ATOMIC_CSWAP, -EOPNOTSUPP},
        {OFP_ALLREDUCE, 0, 0, 8, 0, 0, 1, OFP_ATOMIC_SUM, -EOPNOTSUPP},
        {OFP_ALLREDUCE, 0, 0, 8, 0, 777, 0, OFP_ATOMIC_SUM, -OFP_ENOREGION},
    };

    (void)state;
    team_open(&team, SIZE);
    assert_int_equal(ofp_counter_open(team.domain, &attr, &counter), 0);
    fill_vectors(&vectors);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ofp_endpoint *endpoint = team.members[0].endpoint;
        struct ofp_operation op = record(&team, 0, wrong[i].code, &vectors, wrong[i].length, 0);

        if (wrong[i].peer)
            op.peer = wrong[i].peer;
        op.tag = wrong[i].tag;
        op.flags = wrong[i].flags;
        op.region = wrong[i].region;
        op.segment_count = wrong[i].segments;
        op.atomic_op = wrong[i].atomic_op;
        assert_int_equal(ofp_post(endpoint, &op, 1), wrong[i].error);
        assert_int_equal(ofp_request_start(endpoint, &op, 0, 0), wrong[i].error);
        assert_int_equal(ofp_prepare(endpoint, &op), wrong[i].error);
        assert_int_equal(ofp_post_after(endpoint, &op, 1, counter, 1), wrong[i].error);
    }
    /* Nobody has noticed. */
    post_each(&team, OFP_ALLREDUCE, &vectors, sizeof(int64_t));
    assert_int_equal(ofp_counter_close(counter), 0);
    team_close(&team);
}

/* The completion says that the group broke, at the members whose collective runs; cancelled work never starts. */
static void test_a_group_that_breaks(void **state)
{
    struct ofp_counter_attr attr = {0};
    struct ofp_counter *counter;
    struct ofp_completion row;
    struct ofp_operation op;
    struct team team;

    (void)state;
    team_open(&team, SIZE);
    assert_int_equal(ofp_counter_open(team.domain, &attr, &counter), 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        op = record(&team, rank, OFP_BARRIER, NULL, 0, rank);
        assert_int_equal(ofp_post(team.members[rank].endpoint, &op, 1), 1);
    }
    assert_int_equal(ofp_cancel(team.members[0].endpoint, 0), -ENOENT);
    op = record(&team, 0, OFP_BARRIER, NULL, 0, 10);
    assert_int_equal(ofp_post_after(team.members[0].endpoint, &op, 1, counter, 1), 1);
    op.context = 11;
    assert_int_equal(ofp_post_after(team.members[0].endpoint, &op, 1, counter, 1), 1);
    assert_int_equal(ofp_cancel(team.members[0].endpoint, 10), 0);
    row = team_read(&team);
    assert_int_equal(row.context, 10);
    assert_int_equal(row.error, ECANCELED);
    assert_int_equal(ofp_group_abort(team.members[2].group, "no more"), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(team_read(&team).error, ECONNABORTED);
    /* What becomes due in a broken group ends with its error. */
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    row = team_read(&team);
    assert_int_equal(row.context, 11);
    assert_int_equal(row.error, ECONNABORTED);
    assert_int_equal(ofp_counter_close(counter), 0);
    team_close(&team);
}

/* The group is closed and freed while its collective runs; the endpoint's close ends that, and the group with it. */
static void test_closing_while_an_operation_runs(void **state)
{
    struct ofp_operation op;
    struct team team;

    (void)state;
    team_open(&team, SIZE);
    op = record(&team, 0, OFP_BARRIER, NULL, 0, 5);
    assert_int_equal(ofp_post(team.members[0].endpoint, &op, 1), 1);
    assert_int_equal(ofp_endpoint_close(team.members[0].endpoint, 0), 0);
    team.members[0].endpoint = NULL;
    assert_int_equal(team_read(&team).error, ECANCELED);
    op = record(&team, 1, OFP_BARRIER, NULL, 0, 6);
    assert_int_equal(ofp_post(team.members[1].endpoint, &op, 1), 1);
    /* The group is open, so this has no effect. */
    ofp_group_free(team.members[1].group);
    assert_int_equal(ofp_group_close(team.members[1].group), 0);
    assert_int_equal(team_read(&team).error, ECANCELED);
    assert_int_equal(ofp_post(team.members[1].endpoint, &op, 1), -ENOENT);
    forget_warnings();
    team_close(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_nine_collectives),
        cmocka_unit_test(test_members_start_it_in_different_ways),
        cmocka_unit_test(test_a_chain_of_deferred_collectives),
        cmocka_unit_test(test_deferred_collectives_wait_for_a_place),
        cmocka_unit_test(test_wrong_records_start_nothing),
        cmocka_unit_test(test_a_group_that_breaks),
        cmocka_unit_test(test_closing_while_an_operation_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
