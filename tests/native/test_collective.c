/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups and collectives of the core, without Python. */
#include "collective_fixture.h"

#include "collective/group.h"
#include "object/peer.h"
#include "peer/peer_state.h"
#include "progress/progress.h"

/* ----------------------------------------------------------------------------------------------------------- results */

static void test_a_thousand_members(void **state)
{
    enum { SIZE = 1024 };
    static ofp_request_t requests[SIZE];
    static int64_t values[SIZE];
    struct team team;

    (void)state;
    team_open(&team, SIZE);
    for (uint32_t rank = 0; rank < SIZE; rank++)
        requests[rank] = member_start(&team, rank, barrier());
    for (uint32_t rank = 0; rank < SIZE; rank++)
        assert_int_equal(team_await(&team, requests[rank]), 0);
    for (uint32_t rank = 0; rank < SIZE; rank++) {
        values[rank] = rank;
        requests[rank] =
            member_start(&team, rank, reduction(OFP_COLLECTIVE_ALLREDUCE, &values[rank], &values[rank], 1));
    }
    for (uint32_t rank = 0; rank < SIZE; rank++)
        assert_int_equal(team_await(&team, requests[rank]), 0);
    for (uint32_t rank = 0; rank < SIZE; rank++)
        assert_int_equal(values[rank], SIZE * (SIZE - 1) / 2);
    team_close(&team);
}

/* A barrier ends nowhere before all members have called it. */
static void test_a_barrier_waits_for_the_last(void **state)
{
    struct team team;
    ofp_request_t requests[5];

    (void)state;
    team_open(&team, 5);
    for (uint32_t last = 0; last < 5; last++) {
        for (uint32_t rank = 0; rank < 5; rank++)
            requests[rank] = rank == last ? 0 : member_start(&team, rank, barrier());
        for (int i = 0; i < 50; i++)
            ofp_domain_progress(team.domain);
        for (uint32_t rank = 0; rank < 5; rank++)
            assert_true(rank == last || !ofp_request_finished(requests[rank]));
        requests[last] = member_start(&team, last, barrier());
        for (uint32_t rank = 0; rank < 5; rank++)
            assert_int_equal(team_await(&team, requests[rank]), 0);
    }
    team_close(&team);
}

/* Vectors that travel in pieces, of which more are in flight than there are landings. */
static void test_long_vectors(void **state)
{
    enum { SIZE = 3, COUNT = 500000 };
    struct team team;
    ofp_request_t requests[SIZE];
    int64_t *values[SIZE], *sums[SIZE];

    (void)state;
    team_open(&team, SIZE);
    for (uint32_t rank = 0; rank < SIZE; rank++) {
        values[rank] = malloc(COUNT * sizeof(int64_t));
        sums[rank] = malloc(COUNT * sizeof(int64_t));
        for (int64_t i = 0; i < COUNT; i++)
            values[rank][i] = i * (rank + 1);
    }
    for (uint32_t kind = OFP_COLLECTIVE_REDUCE; kind <= OFP_COLLECTIVE_ALLREDUCE; kind++) {
        for (uint32_t rank = 0; rank < SIZE; rank++)
            requests[rank] = member_start(&team, rank, reduction(kind, values[rank], sums[rank], COUNT));
        for (uint32_t rank = 0; rank < SIZE; rank++)
            assert_int_equal(team_await(&team, requests[rank]), 0);
        for (uint32_t rank = 0; rank < (kind == OFP_COLLECTIVE_REDUCE ? 1 : SIZE); rank++)
            for (int64_t i = 0; i < COUNT; i++)
                assert_int_equal(sums[rank][i], i * 6);
    }
    for (uint32_t rank = 0; rank < SIZE; rank++) {
        free(values[rank]);
        free(sums[rank]);
    }
    team_close(&team);
}

static void test_results_of_unknown_size(void **state)
{
    static const char text[] = "abcdefgh";
    struct ofp_collective_result results[4] = {{0}};
    ofp_request_t requests[4];
    struct team team;

    (void)state;
    team_open(&team, 4);
    for (uint32_t rank = 0; rank < 4; rank++)
        requests[rank] = member_start(&team, rank,
                                      (struct ofp_collective){.kind = OFP_COLLECTIVE_ALLGATHER,
                                                              .datatype = OFP_UINT8,
                                                              .flags = OFP_COLLECTIVE_SIZED,
                                                              .count = rank,
                                                              .source = (uint64_t)(uintptr_t)text,
                                                              .result = &results[rank]});
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_int_equal(team_await(&team, requests[rank]), 0);
        assert_int_equal(results[rank].blocks, 4);
        assert_int_equal(results[rank].length, 6);
        assert_int_equal(results[rank].ends[3], 3);
        assert_memory_equal(results[rank].memory, "aababc", 6);
        ofp_collective_result_free(&results[rank]);
    }
    team_close(&team);
}

static void test_prepared_collectives_run_again(void **state)
{
    struct team team;
    ofp_request_t requests[3];
    int64_t values[3];

    (void)state;
    team_open(&team, 3);
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct ofp_collective call = reduction(OFP_COLLECTIVE_ALLREDUCE, &values[rank], &values[rank], 1);

        requests[rank] = ofp_collective_prepare(team.members[rank].group, &call);
        assert_true(requests[rank] > 0);
    }
    for (int run = 1; run < 5; run++) {
        for (uint32_t rank = 0; rank < 3; rank++) {
            values[rank] = run;
            assert_int_equal(ofp_start(requests[rank], 0, 0), 0);
        }
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_int_equal(team_await(&team, requests[rank]), 0);
            assert_int_equal(values[rank], 3 * run);
        }
    }
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(ofp_request_abandon(requests[rank], false), 0);
    /* The third one is freed with its domain. */
    team_close(&team);
}

/* ---------------------------------------------------------------------------------------------------------- far ahead */

static struct ofp_collective broadcast(char *byte)
{
    return (struct ofp_collective){
        .kind = OFP_COLLECTIVE_BROADCAST, .datatype = OFP_UINT8, .count = 1, .target = (uint64_t)(uintptr_t)byte};
}

/* Start broadcasts of the root until one does not end at once; returns its number. */
static uint32_t run_root_ahead(struct team *team, char *bytes, uint32_t limit, ofp_request_t *stuck)
{
    for (uint32_t i = 0; i < limit; i++) {
        bytes[i] = (char)i;
        *stuck = member_start(team, 0, broadcast(&bytes[i]));
        assert_true(*stuck > 0);
        for (int round = 0; round < 50; round++)
            ofp_domain_progress(team->domain);
        if (!ofp_request_finished(*stuck))
            return i;
        assert_int_equal(team_await(team, *stuck), 0);
    }
    return limit;
}

/* A root that nobody answers is 64 calls ahead of a member that calls nothing, and continues when that one has called. */
static void test_a_root_is_64_calls_ahead(void **state)
{
    enum { COUNT = 1000 };
    char sent[COUNT], received[3][COUNT] = {{0}};
    struct team team;
    ofp_request_t stuck;
    uint32_t first;

    (void)state;
    team_open(&team, 3);
    first = run_root_ahead(&team, sent, COUNT, &stuck);
    assert_int_equal(first, 64);
    for (uint32_t i = 0; i < COUNT; i++) {
        ofp_request_t root = i == first ? stuck : 0;

        if (i > first) {
            sent[i] = (char)i;
            root = member_start(&team, 0, broadcast(&sent[i]));
        }
        for (uint32_t rank = 1; rank < 3; rank++) {
            assert_int_equal(team_await(&team, member_start(&team, rank, broadcast(&received[rank][i]))), 0);
            assert_int_equal(received[rank][i], (char)i);
        }
        if (root)
            assert_int_equal(team_await(&team, root), 0);
    }
    /* Where all answer, as in a barrier, the next calls wait for nobody. */
    {
        ofp_request_t requests[3];

        for (uint32_t rank = 0; rank < 3; rank++)
            requests[rank] = member_start(&team, rank, barrier());
        for (uint32_t rank = 0; rank < 3; rank++)
            assert_int_equal(team_await(&team, requests[rank]), 0);
    }
    assert_int_equal(run_root_ahead(&team, sent, COUNT, &stuck), 64);
    team_close(&team);
}

/* Nothing is in flight to the member that the root waits for, and yet its end is noticed. */
static void test_a_member_that_is_gone_while_the_root_waits(void **state)
{
    struct ofp_group_state found;
    struct team team;
    ofp_request_t stuck;
    char sent[100];

    (void)state;
    team_open(&team, 2);
    assert_int_equal(run_root_ahead(&team, sent, 100, &stuck), 64);
    assert_int_equal(ofp_endpoint_close(team.members[1].endpoint, 0), 0);
    team.members[1].endpoint = NULL;
    assert_int_not_equal(team_await(&team, stuck), 0);
    assert_int_equal(ofp_group_query(team.members[0].group, &found), 0);
    assert_int_equal(found.lost_count, 1);
    assert_int_equal(found.lost[0], 1);
    forget_warnings();
    team_close(&team);
}

/* A collective that waits says for whom, to who asks and in the log, once. */
static void test_a_collective_names_those_that_it_waits_for(void **state)
{
    struct ofp_collective_state found;
    struct ofp_group_state unbroken;
    struct team team;
    char text[OFP_TEXT_MAX], provider[32];
    ofp_request_t requests[5];
    int level;

    (void)state;
    team_open(&team, 5);
    forget_warnings();
    for (uint32_t rank = 0; rank < 5; rank++)
        team.members[rank].group->patience_period = 1000000;
    for (uint32_t rank = 0; rank < 3; rank++)
        requests[rank] = member_start(&team, rank, barrier());
    while (!ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)))
        ofp_domain_progress(team.domain);
    assert_int_equal(level, OFP_LOG_WARNING);
    assert_non_null(strstr(text, "call 0 (barrier) of rank "));
    /* Rank 0 waits for the one before it. */
    assert_int_equal(ofp_collective_query(requests[0], &found), 0);
    assert_int_equal(found.sequence, 0);
    assert_int_equal(found.kind, OFP_COLLECTIVE_BARRIER);
    assert_int_equal(found.awaited_count, 1);
    assert_int_equal(found.awaited[0], 4);
    for (uint32_t rank = 3; rank < 5; rank++)
        requests[rank] = member_start(&team, rank, barrier());
    for (uint32_t rank = 0; rank < 5; rank++)
        assert_int_equal(team_await(&team, requests[rank]), 0);
    assert_int_equal(ofp_collective_query(requests[0], &found), -ESTALE);
    assert_int_equal(ofp_group_query(team.members[0].group, &unbroken), 0);
    assert_int_equal(unbroken.error, 0);
    forget_warnings();
    team_close(&team);
}

/* -------------------------------------------------------------------------------------------------------------- ends */

static void test_wrong_descriptions_start_nothing(void **state)
{
    int64_t values[8] = {0};
    struct team team;
    struct ofp_collective call = reduction(OFP_COLLECTIVE_ALLREDUCE, values, values + 1, 2);

    (void)state;
    team_open(&team, 2);
    assert_int_equal(member_start(&team, 0, call), -EINVAL); /* they overlap */
    call.datatype = OFP_DOUBLE;
    call.atomic_op = OFP_ATOMIC_BXOR;
    assert_int_equal(member_start(&team, 0, call), -EOPNOTSUPP);
    call.atomic_op = OFP_ATOMIC_CSWAP;
    assert_int_equal(member_start(&team, 0, call), -EOPNOTSUPP);
    call = reduction(OFP_COLLECTIVE_ALLREDUCE, values, values, UINT64_MAX / 8);
    assert_int_equal(member_start(&team, 0, call), -EINVAL);
    call = reduction(OFP_COLLECTIVE_EXSCAN + 1, values, values, 1);
    assert_int_equal(member_start(&team, 0, call), -EINVAL);
    call = reduction(OFP_COLLECTIVE_REDUCE, values, values, 1);
    call.root = 2;
    assert_int_equal(member_start(&team, 0, call), -EINVAL);
    call = reduction(OFP_COLLECTIVE_ALLREDUCE, values, values, 1);
    call.source_region = 12345;
    assert_int_equal(member_start(&team, 0, call), -OFP_ENOREGION);
    /* Nobody has noticed. */
    call = reduction(OFP_COLLECTIVE_ALLREDUCE, values, values + 1, 1);
    values[0] = 7;
    assert_int_equal(ofp_reduction_size(OFP_ATOMIC_SUM, OFP_BFLOAT16), 2);
    {
        int64_t other[2] = {35, 0};
        ofp_request_t one = member_start(&team, 0, call), two;

        two = member_start(&team, 1, reduction(OFP_COLLECTIVE_ALLREDUCE, other, other + 1, 1));
        assert_int_equal(team_await(&team, one), 0);
        assert_int_equal(team_await(&team, two), 0);
        assert_int_equal(values[1], 42);
        assert_int_equal(other[1], 42);
    }
    team_close(&team);
}

/* Members that make different calls get told so; nothing starts in the group from then on. */
static void test_different_calls(void **state)
{
    int64_t value = 1;
    struct team team;
    ofp_request_t one, other;

    (void)state;
    team_open(&team, 2);
    one = member_start(&team, 0, barrier());
    other = member_start(&team, 1, reduction(OFP_COLLECTIVE_ALLREDUCE, &value, &value, 1));
    assert_int_equal(team_await(&team, one), OFP_EMISMATCH);
    assert_int_equal(team_await(&team, other), OFP_EMISMATCH);
    assert_int_equal(member_start(&team, 0, barrier()), -OFP_EMISMATCH);
    team_close(&team);
}

/* Each waits for the other one's vector, so no message of one call meets the other call: they ask each other. */
static void test_different_calls_that_wait_for_each_other(void **state)
{
    struct ofp_group_state found;
    char one[8], other[8];
    struct team team;
    ofp_request_t requests[2];

    (void)state;
    team_open(&team, 2);
    for (uint32_t rank = 0; rank < 2; rank++)
        requests[rank] = member_start(&team, rank,
                                      (struct ofp_collective){.kind = OFP_COLLECTIVE_BROADCAST,
                                                              .datatype = OFP_UINT8,
                                                              .root = 1 - rank,
                                                              .count = 8,
                                                              .target = (uint64_t)(uintptr_t)(rank ? one : other)});
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(team_await(&team, requests[rank]), OFP_EMISMATCH);
        assert_int_equal(ofp_group_query(team.members[rank].group, &found), 0);
        assert_int_equal(found.error, OFP_EMISMATCH);
        assert_int_equal(found.rank, 1 - rank);
        assert_int_equal(found.sequence, 0);
        assert_true(found.mine != found.theirs);
    }
    team_close(&team);
}

/* Members that wait for one that is gone, and those that wait for these, are all told which one it is. */
static void test_a_member_that_is_gone(void **state)
{
    enum { SIZE = 9, GONE = 4 };
    struct ofp_group_state found;
    struct team team;
    ofp_request_t requests[SIZE];

    (void)state;
    team_open(&team, SIZE);
    for (uint32_t rank = 0; rank < SIZE; rank++)
        requests[rank] = member_start(&team, rank, barrier());
    for (uint32_t rank = 0; rank < SIZE; rank++)
        assert_int_equal(team_await(&team, requests[rank]), 0);
    for (uint32_t rank = 0; rank < SIZE; rank++)
        requests[rank] = rank == GONE ? 0 : member_start(&team, rank, barrier());
    assert_int_equal(ofp_endpoint_close(team.members[GONE].endpoint, 0), 0);
    team.members[GONE].endpoint = NULL;
    for (uint32_t rank = 0; rank < SIZE; rank++) {
        if (rank == GONE)
            continue;
        assert_int_not_equal(team_await(&team, requests[rank]), 0);
        assert_int_equal(ofp_group_query(team.members[rank].group, &found), 0);
        assert_int_equal(found.lost_count, 1);
        assert_int_equal(found.lost[0], GONE);
        assert_int_equal(member_start(&team, rank, barrier()), -found.error);
    }
    forget_warnings();
    team_close(&team);
}

/* The connection drops between two collectives and would be made again: what was under way may be missing. */
static void test_a_connection_that_comes_back(void **state)
{
    struct team team;
    struct ofpi_peer *peer;

    (void)state;
    team_open(&team, 2);
    /* The first messages connect, and the next ones are bound. */
    for (int i = 0; i < 2; i++) {
        ofp_request_t first = member_start(&team, 0, barrier()), second = member_start(&team, 1, barrier());

        assert_int_equal(team_await(&team, first), 0);
        assert_int_equal(team_await(&team, second), 0);
    }
    peer = ofpi_peer_find_at((struct ofpi_endpoint *)team.members[0].endpoint, team.members[0].peers[1]);
    assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)team.domain), 0);
    ofpi_peer_lost(&peer->base, ECONNRESET, false, "the test says so");
    ofpi_domain_leave((struct ofpi_domain *)team.domain);
    for (int i = 0; i < 4; i++)
        ofp_domain_progress(team.domain);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(team_await(&team, member_start(&team, rank, barrier())), OFP_EPEERLOST);
    forget_warnings();
    team_close(&team);
}

/* A member that closes its group while collectives run ends them for all; after them it disturbs nobody. */
static void test_a_member_that_gives_up(void **state)
{
    struct team team;
    ofp_request_t requests[3];

    (void)state;
    team_open(&team, 3);
    for (uint32_t rank = 0; rank < 2; rank++)
        requests[rank] = member_start(&team, rank, barrier());
    ofp_group_close(team.members[0].group);
    assert_int_equal(team_await(&team, requests[0]), ECANCELED);
    assert_int_equal(team_await(&team, requests[1]), ECONNABORTED);
    for (int i = 0; i < 50; i++)
        ofp_domain_progress(team.domain);
    assert_int_equal(member_start(&team, 2, barrier()), -ECONNABORTED);
    team_close(&team);
}

static void test_closing_while_it_runs(void **state)
{
    int64_t value = 1;
    struct team team;
    ofp_request_t one, two, abandoned;

    (void)state;
    team_open(&team, 3);
    abandoned = member_start(&team, 0, reduction(OFP_COLLECTIVE_ALLREDUCE, &value, &value, 1));
    one = member_start(&team, 0, barrier());
    two = member_start(&team, 1, barrier());
    assert_int_equal(ofp_request_abandon(abandoned, true), 1);
    ofp_group_close(team.members[0].group);
    assert_int_equal(team_await(&team, one), ECANCELED);
    assert_int_equal(member_start(&team, 0, barrier()), -ECANCELED);
    assert_int_equal(ofp_endpoint_close(team.members[1].endpoint, 0), 0);
    team.members[1].endpoint = NULL;
    assert_int_equal(team_await(&team, two), ECANCELED);
    assert_int_equal(member_start(&team, 1, barrier()), -ECANCELED);
    team_close(&team);
}

static void test_as_many_as_may_run(void **state)
{
    struct team team;
    ofp_request_t requests[64];

    (void)state;
    team_open(&team, 2);
    for (int i = 0; i < 64; i++)
        requests[i] = member_start(&team, 0, barrier());
    assert_int_equal(member_start(&team, 0, barrier()), -EAGAIN);
    for (int i = 0; i < 64; i++)
        assert_int_equal(team_await(&team, member_start(&team, 1, barrier())), 0);
    for (int i = 0; i < 64; i++)
        assert_int_equal(team_await(&team, requests[i]), 0);
    team_close(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thousand_members),
        cmocka_unit_test(test_a_barrier_waits_for_the_last),
        cmocka_unit_test(test_long_vectors),
        cmocka_unit_test(test_results_of_unknown_size),
        cmocka_unit_test(test_prepared_collectives_run_again),
        cmocka_unit_test(test_a_root_is_64_calls_ahead),
        cmocka_unit_test(test_a_member_that_is_gone_while_the_root_waits),
        cmocka_unit_test(test_a_collective_names_those_that_it_waits_for),
        cmocka_unit_test(test_wrong_descriptions_start_nothing),
        cmocka_unit_test(test_different_calls),
        cmocka_unit_test(test_different_calls_that_wait_for_each_other),
        cmocka_unit_test(test_a_member_that_is_gone),
        cmocka_unit_test(test_a_connection_that_comes_back),
        cmocka_unit_test(test_a_member_that_gives_up),
        cmocka_unit_test(test_closing_while_it_runs),
        cmocka_unit_test(test_as_many_as_may_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
