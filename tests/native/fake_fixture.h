/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sides over a kind of the fake provider that the test names, driven by hand. */
#ifndef FAKE_FIXTURE_H
#define FAKE_FIXTURE_H

#include "core_fixture.h"

static struct side a, b;

static inline int open_kind(bool offloads_matching)
{
    side_open(&a, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&a, &b);
    return 0;
}

static inline int open_matched(void **state)
{
    (void)state;
    return open_kind(false);
}

static inline int open_offloaded(void **state)
{
    (void)state;
    return open_kind(true);
}

static inline int close_both(void **state)
{
    (void)state;
    if (a.endpoint)
        side_close(&a);
    if (b.endpoint)
        side_close(&b);
    return 0;
}

static inline void post(struct side *side, struct ofp_operation op, uint64_t flags)
{
    op.flags |= flags;
    assert_int_equal(ofp_post(side->endpoint, &op, 1), 1);
}

/* A few rounds of progress on both sides: whatever could happen has happened. */
static inline void settle(void)
{
    for (int i = 0; i < 20; i++) {
        ofp_domain_progress(a.domain);
        ofp_domain_progress(b.domain);
    }
}

static inline bool completed(struct side *side, struct ofp_completion *row)
{
    settle();
    return ofp_cq_read(side->cq, row, 1) == 1;
}

static inline void close_endpoint(struct side *side)
{
    assert_int_equal(ofp_endpoint_close(side->endpoint, 0), 0);
    side->endpoint = NULL;
}

#endif
