/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreements of the core's groups, and aborts. */
#include "collective_fixture.h"

/* Members agree without one that is gone, and with the reason of an abort; who closes its group answers the others. */
static void test_an_agreement(void **state)
{
    enum { SIZE = 5, GONE = 0 };
    struct ofp_agreement_result results[SIZE];
    struct ofp_group_state found;
    uint32_t values[SIZE][SIZE];
    ofp_request_t requests[SIZE];
    struct team team;

    (void)state;
    team_open(&team, SIZE);
    assert_int_equal(ofp_group_abort(team.members[3].group, "a reason"), 0);
    for (uint32_t rank = 0; rank < SIZE; rank++)
        for (int i = 0; i < 20; i++)
            ofp_domain_progress(team.domain);
    assert_int_equal(ofp_group_query(team.members[1].group, &found), 0);
    assert_int_equal(found.error, ECONNABORTED);
    assert_int_equal(found.cause, OFP_GROUP_CAUSE_ABORT);
    assert_int_equal(found.rank, 3);
    assert_string_equal(found.reason, "a reason");
    assert_int_equal(found.lost_count, 0);
    assert_int_equal(ofp_endpoint_close(team.members[GONE].endpoint, 0), 0);
    team.members[GONE].endpoint = NULL;
    for (uint32_t rank = 1; rank < SIZE; rank++) {
        results[rank] = (struct ofp_agreement_result){.values = values[rank]};
        assert_int_equal(ofp_group_agree(team.members[rank].group, 1, OFP_GROUP_DEAD, &results[rank]), -EINVAL);
        requests[rank] = ofp_group_agree(team.members[rank].group, 8 | rank, 10 + rank, &results[rank]);
        assert_true(requests[rank] > 0);
    }
    assert_int_equal(ofp_group_agree(team.members[SIZE - 1].group, 1, 1, &results[SIZE - 1]), -EBUSY);
    for (uint32_t rank = 1; rank < SIZE; rank++) {
        assert_int_equal(team_await(&team, requests[rank]), 0);
        ofp_group_close(team.members[rank].group);
    }
    for (uint32_t rank = 1; rank < SIZE; rank++) {
        assert_int_equal(results[rank].flags, 8);
        for (uint32_t other = 0; other < SIZE; other++)
            assert_int_equal(values[rank][other], other == GONE ? OFP_GROUP_DEAD : 10 + other);
    }
    assert_int_equal(ofp_group_agree(team.members[1].group, 1, 1, &results[1]), -ECANCELED);
    forget_warnings();
    team_close(&team);
}

/* A member that closes its group during an agreement takes part no more. */
static void test_closing_during_an_agreement(void **state)
{
    struct ofp_agreement_result results[3];
    uint32_t values[3][3];
    ofp_request_t requests[3];
    struct team team;

    (void)state;
    team_open(&team, 3);
    for (uint32_t rank = 0; rank < 2; rank++) {
        results[rank] = (struct ofp_agreement_result){.values = values[rank]};
        requests[rank] = ofp_group_agree(team.members[rank].group, rank, 0, &results[rank]);
    }
    ofp_group_close(team.members[0].group);
    assert_int_equal(team_await(&team, requests[0]), ECANCELED);
    results[2] = (struct ofp_agreement_result){.values = values[2]};
    requests[2] = ofp_group_agree(team.members[2].group, 3, 0, &results[2]);
    for (uint32_t rank = 1; rank < 3; rank++) {
        assert_int_equal(team_await(&team, requests[rank]), 0);
        assert_int_equal(results[rank].flags, 1);
        assert_int_equal(values[rank][0], OFP_GROUP_DEAD);
        assert_int_equal(member_start(&team, rank, barrier()), -OFP_EPEERLOST);
    }
    forget_warnings();
    team_close(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_agreement),
        cmocka_unit_test(test_closing_during_an_agreement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
