/* SPDX-License-Identifier: BSD-3-Clause */
/* Retiring objects under threads that go on calling: each call is answered, none touches memory that is gone. */
#include "core_fixture.h"

#include <sched.h>

enum { ROUNDS = 30, CALLS = 7 };

struct caller {
    struct side *side;
    int which;
    _Atomic uint32_t *begun;
    pthread_t thread;
};

/* One call of each kind; returns its result. */
static int64_t call(struct caller *caller)
{
    struct side *side = caller->side;
    struct ofp_completion row;
    struct ofp_endpoint_statistics statistics;
    char address[OFP_ADDRESS_MAX], out[8] = "";
    size_t length = sizeof(address);
    struct ofp_operation send = tagged(OFP_TSEND, side->peer, 1, out, sizeof(out), 0);
    uint32_t index;
    bool expired;

    send.flags = OFP_INJECT;
    switch (caller->which) {
    case 0:
        return ofp_cq_read(side->cq, &row, 1);
    case 1:
        return ofp_cq_wait(side->cq, &row, 1, 1, 100000, &expired);
    case 2:
        return ofp_post(side->endpoint, &send, 1);
    case 3:
        return ofp_endpoint_statistics(side->endpoint, &statistics);
    case 4:
        return ofp_av_lookup(side->av, side->peer, address, &length);
    case 5:
        return ofp_av_find(side->av, "nobody", 6, &index) == -ECANCELED ? -ECANCELED : 0;
    default:
        return ofp_domain_progress(side->domain);
    }
}

static void *call_until_refused(void *argument)
{
    struct caller *caller = argument;
    int64_t result;

    do {
        result = call(caller);
        atomic_fetch_or(caller->begun, 1u << caller->which);
        /* A full transmit queue is no end. */
    } while (result >= 0 || result == -EAGAIN);
    assert_int_equal(result, -ECANCELED);
    return NULL;
}

static void test_calls_meet_the_end(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct side side;
        struct caller callers[CALLS];
        _Atomic uint32_t begun = 0;

        side_open(&side, round % 2, OFP_PROGRESS_MANUAL, 64);
        sides_meet(&side, &side);
        for (int i = 0; i < CALLS; i++) {
            callers[i] = (struct caller){.side = &side, .which = i, .begun = &begun};
            assert_int_equal(pthread_create(&callers[i].thread, NULL, call_until_refused, &callers[i]), 0);
        }
        while (atomic_load(&begun) != (1u << CALLS) - 1)
            sched_yield();
        assert_int_equal(ofp_endpoint_retire(side.endpoint, 0), 0);
        assert_int_equal(ofp_av_retire(side.av), 0);
        assert_int_equal(ofp_cq_retire(side.cq), 0);
        assert_int_equal(ofp_domain_retire(side.domain), 0);
        for (int i = 0; i < CALLS; i++)
            pthread_join(callers[i].thread, NULL);
        ofp_endpoint_free(side.endpoint);
        ofp_av_free(side.av);
        ofp_cq_free(side.cq);
        ofp_domain_free(side.domain);
    }
}

static void test_a_second_end_is_refused(void **state)
{
    struct side side;

    (void)state;
    side_open(&side, false, OFP_PROGRESS_AUTO, 64);
    /* What was not retired is left alone. */
    ofp_endpoint_free(side.endpoint);
    ofp_av_free(side.av);
    ofp_cq_free(side.cq);
    ofp_domain_free(side.domain);
    assert_int_equal(ofp_endpoint_retire(side.endpoint, 0), 0);
    assert_int_equal(ofp_endpoint_retire(side.endpoint, 0), -ECANCELED);
    ofp_endpoint_free(side.endpoint);
    assert_int_equal(ofp_av_retire(side.av), 0);
    assert_int_equal(ofp_av_retire(side.av), -ECANCELED);
    ofp_av_free(side.av);
    assert_int_equal(ofp_cq_retire(side.cq), 0);
    assert_int_equal(ofp_cq_retire(side.cq), -ECANCELED);
    ofp_cq_free(side.cq);
    assert_int_equal(ofp_domain_retire(side.domain), 0);
    assert_int_equal(ofp_domain_retire(side.domain), -ECANCELED);
    ofp_domain_free(side.domain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_meet_the_end),
        cmocka_unit_test(test_a_second_end_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
