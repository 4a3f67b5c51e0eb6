/* SPDX-License-Identifier: BSD-3-Clause */
/* A hook that counts, and does what a test asks for. */
#ifndef HOOK_WITNESS_H
#define HOOK_WITNESS_H

#include "hook_fixture.h"
#include "hook/hook_load.h"

#include <stdio.h>

#define MS 1000000ull

/* What all the hooks of a test have seen together. */
static struct {
    uint32_t opened, closed, posted, refused, completed, more, peers_changed, released;
    uint32_t order[16]; /* numbers of the hooks asked */
    char label[16];     /* of the one opened last */
    double share;
} seen;

/* What the first hook answers. */
static struct {
    int error;
    uint64_t delay;
    bool lose;
    int open_error;
} asked;

static const struct ofp_hook_core *core;

static const struct ofp_param witness_options[] = {
    {"label", OFP_PARAM_STRING, "none", "Told", 0, 0},
    {"share", OFP_PARAM_FRACTION, "0.5", "Told", 0, 0},
    {"time", OFP_PARAM_TIME, "1ms", "Told", 0, 10 * MS},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

struct mark {
    uint64_t number;
};

static int witness_open(struct ofp_hook_endpoint *hook, char *text, size_t text_size)
{
    snprintf(seen.label, sizeof(seen.label), "%s", core->option_string(hook, "label"));
    seen.share = core->option_fraction(hook, "share");
    assert_true(core->lock_is_held(hook));
    assert_int_equal(((struct mark *)hook->private)->number, 0);
    if (asked.open_error)
        snprintf(text, text_size, "not today");
    else
        seen.opened++;
    return asked.open_error;
}

static void witness_close(struct ofp_hook_endpoint *hook)
{
    (void)hook;
    seen.closed++;
}

static int witness_post(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                        struct ofp_hook_verdict *verdict)
{
    struct mark *mark = operation->private;

    assert_int_equal(mark->number, 0);
    mark->number = operation->number + hook->number;
    assert_non_null(operation->op);
    if (seen.posted < 16)
        seen.order[seen.posted] = hook->number;
    seen.posted++;
    if (operation->peer && operation->code == OFP_TSEND)
        ((struct mark *)core->peer_private(hook, operation->peer))->number++;
    if (hook->number)
        return 0;
    if (asked.lose)
        core->peer_lose(hook, operation->peer, "lost by the witness");
    if (asked.delay) {
        verdict->retry_at = ofpi_clock_read() + asked.delay;
        return -EAGAIN;
    }
    if (asked.error)
        snprintf(verdict->text, sizeof(verdict->text), "it was asked to");
    return -asked.error;
}

static void witness_refused(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation, int error)
{
    assert_int_equal(((struct mark *)operation->private)->number, operation->number + hook->number);
    assert_true(error > 0);
    seen.refused++;
}

static void witness_completed(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                              const struct ofp_completion *completion, bool more)
{
    (void)completion;
    assert_int_equal(((struct mark *)operation->private)->number, operation->number + hook->number);
    assert_null(operation->op);
    if (more)
        seen.more++;
    else
        seen.completed++;
}

static void witness_peer_changed(struct ofp_hook_endpoint *hook, struct ofp_peer *peer, enum ofp_peer_state before,
                                 int error)
{
    (void)hook;
    assert_true(before != peer->state);
    assert_true(!error == (peer->state != OFP_PEER_LOST));
    seen.peers_changed++;
}

static void witness_released(struct ofp_hook_endpoint *hook, void *memory, size_t length)
{
    (void)hook;
    memset(memory, 0, length);
    seen.released++;
}

static int64_t witness_report(struct ofp_hook_endpoint *hook, char *json, size_t size)
{
    (void)hook;
    return snprintf(json, size, "{\"posted\": %u}", seen.posted);
}

static const struct ofp_hook witness = {
    .abi = OFP_HOOK_ABI,
    .size = sizeof(witness),
    .name = "witness",
    .description = "For tests",
    .options = witness_options,
    .endpoint_size = sizeof(struct mark),
    .peer_size = sizeof(struct mark),
    .operation_size = sizeof(struct mark),
    .open = witness_open,
    .close = witness_close,
    .post = witness_post,
    .refused = witness_refused,
    .completed = witness_completed,
    .peer_changed = witness_peer_changed,
    .released = witness_released,
    .report = witness_report,
};

static const struct ofp_hook *entry(const struct ofp_hook_core *given)
{
    core = given;
    return &witness;
}

static inline int setup(void **state)
{
    char text[OFP_TEXT_MAX] = "";

    (void)state;
    memset(&seen, 0, sizeof(seen));
    memset(&asked, 0, sizeof(asked));
    return ofpi_hook_register(entry, text, sizeof(text));
}

#endif
