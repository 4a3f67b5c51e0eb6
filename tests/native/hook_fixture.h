/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints with hooks, over the fake provider. */
#ifndef HOOK_FIXTURE_H
#define HOOK_FIXTURE_H

#include "hook/hooked.h"
#include "request_fixture.h"

static inline void hooked_side_open(struct side *side, const char *hooks, bool offloads_matching)
{
    setenv("OFIPY_HOOKS", hooks, 1);
    side_open(side, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    unsetenv("OFIPY_HOOKS");
    sides_meet(side, side);
}

static inline void post_one(struct side *side, struct ofp_operation op)
{
    assert_int_equal(ofp_post(side->endpoint, &op, 1), 1);
}

/* The sentence behind a completion's provider_error. */
static inline const char *reason_of(const struct ofp_completion *completion)
{
    static char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_reason(completion->provider_error, text, sizeof(text)), 1);
    return text;
}

#endif
