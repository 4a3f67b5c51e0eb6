/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that return when another thread is in the domain, for callers that hold a lock of their own. */
#include "collective_fixture.h"

#include <errno.h>
#include <pthread.h>

#include "object/domain.h"
#include "progress/progress.h"

struct attempt {
    struct team *team;
    ofp_request_t collective, receive;
};

static void *start_at_once(void *argument)
{
    struct attempt *attempt = argument;
    struct ofp_collective call = barrier();
    struct ofp_operation receive = {.op = OFP_TRECV, .peer = OFP_PEER_ANY};

    attempt->collective = ofp_collective_start(attempt->team->members[0].group, &call, OFP_START_AT_ONCE, 0);
    attempt->receive = ofp_request_start(attempt->team->members[0].endpoint, &receive, OFP_START_AT_ONCE, 0);
    return NULL;
}

static void test_another_thread_in_the_domain_is_not_waited_for(void **state)
{
    struct team team;
    struct attempt attempt = {.team = &team};
    struct ofpi_domain *domain;
    pthread_t thread;

    (void)state;
    team_open(&team, 1);
    domain = (struct ofpi_domain *)team.domain;
    assert_int_equal(ofpi_domain_enter(domain), 0);
    pthread_create(&thread, NULL, start_at_once, &attempt);
    pthread_join(thread, NULL);
    ofpi_domain_leave(domain);
    assert_int_equal(attempt.collective, -ENOLCK);
    assert_int_equal(attempt.receive, -ENOLCK);
    /* Nothing was started: the group's first collective is this one. */
    start_at_once(&attempt);
    assert_int_equal(team_await(&team, attempt.collective), 0);
    assert_true(attempt.receive > 0);
    assert_true(ofp_request_abandon(attempt.receive, true) >= 0);
    team_close(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_another_thread_in_the_domain_is_not_waited_for)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
