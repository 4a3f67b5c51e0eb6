/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a waiter polls before it sleeps. */
#include "progress/progress.h"
#include "progress/wait.h"
#include "request_fixture.h"

static struct side a, b;

static int open_both(void **state)
{
    (void)state;
    side_open(&a, false, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&a, &b);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    side_close(&a);
    side_close(&b);
    return 0;
}

static bool is_past(const void *moment) { return ofpi_clock_read() > *(const uint64_t *)moment; }

static int read_a_part(struct ofp_endpoint *endpoint)
{
    (void)endpoint;
    return 1;
}

/* The parts of a long message are events, and the waiter is awake for all of them, however long the message takes. */
static void test_a_waiter_does_not_sleep_while_events_arrive(void **state)
{
    const struct ofp_endpoint_ops *before = b.endpoint->ops;
    struct ofp_endpoint_ops ops = *before;
    struct ofpi_domain *domain = (struct ofpi_domain *)b.domain;
    uint64_t sleeps, end;
    bool expired;

    (void)state;
    ops.progress = read_a_part;
    b.endpoint->ops = &ops;
    assert_int_equal(ofpi_domain_enter(domain), 0);
    sleeps = domain->sleeps;
    end = ofpi_clock_read() + 100 * domain->spin_limit_ns;
    assert_int_equal(ofpi_domain_wait(domain, is_past, &end, -1, &expired), 1);
    assert_int_equal(domain->sleeps, sleeps);
    b.endpoint->ops = before;
    ofpi_domain_leave(domain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_waiter_does_not_sleep_while_events_arrive, open_both, close_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
