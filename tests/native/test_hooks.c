/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's side of hooks, with a hook that counts and does what a test asks for. */
#include "hook_fixture.h"

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
        verdict->retry_at = ofpi_now() + asked.delay;
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

static int setup(void **state)
{
    char text[OFP_TEXT_MAX] = "";

    (void)state;
    memset(&seen, 0, sizeof(seen));
    memset(&asked, 0, sizeof(asked));
    return ofpi_hook_register(entry, text, sizeof(text));
}

/* ---------------------------------------------------------------------------------------------------------- the list */

static void expect_refusal(const char *list, const char *words)
{
    char text[OFP_TEXT_MAX] = "";

    assert_int_equal(ofp_hooks_check(list, text, sizeof(text)), -EINVAL);
    if (!strstr(text, words))
        fail_msg("%s: \"%s\" lacks \"%s\"", list, text, words);
}

static void test_lists_are_read(void **state)
{
    char text[OFP_TEXT_MAX] = "";

    (void)state;
    assert_int_equal(ofp_hooks_check("", text, sizeof(text)), 0);
    assert_int_equal(ofp_hooks_check("witness", text, sizeof(text)), 0);
    assert_int_equal(ofp_hooks_check("witness:label=a=b:c,share=1.0,time=250us;witness", text, sizeof(text)), 0);
}

static void test_what_there_is_not_is_refused_by_name(void **state)
{
    (void)state;
    expect_refusal("tracer", "no hook \"tracer\"; known are ");
    expect_refusal("tracer", "fault");
    expect_refusal("witness;", "no hook \"\"");
    expect_refusal("witness:colour=red", "hook witness has no option \"colour\"; it has label, share, time");
    expect_refusal("witness:share=2", "hook witness: share=2; 0 to 1 is meant");
    expect_refusal("witness:share=1.01", "0 to 1");
    expect_refusal("witness:share=.5", "0 to 1");
    expect_refusal("witness:share", "share=; 0 to 1");
    expect_refusal("witness:time=11ms", "0 to 10ms is meant");
    expect_refusal("witness:time=5", "0 to 10ms is meant");
    expect_refusal("debug:x=1", "hook debug has no option \"x\"; it has none");
}

static void test_a_domain_refuses_a_list(void **state)
{
    struct ofp_info info = fake_info(false);
    struct ofp_domain_attr attr = {.hooks = "witness:share=7"};
    struct ofp_domain *domain;
    char text[OFP_TEXT_MAX];

    (void)state;
    assert_int_equal(ofp_domain_open(fake_provider(), &info, &attr, &domain, text, sizeof(text)), -EINVAL);
    assert_non_null(strstr(text, "share=7"));
}

static void test_options_reach_the_hook(void **state)
{
    struct side side;
    char json[32];

    (void)state;
    hooked_side_open(&side, "witness;witness:label=second,share=0.25", false);
    assert_int_equal(seen.opened, 2);
    assert_string_equal(seen.label, "second");
    assert_true(seen.share == 0.25);
    assert_int_equal(ofp_endpoint_hook_report(side.endpoint, "witness", json, sizeof(json)), 13);
    assert_string_equal(json, "{\"posted\": 0}");
    assert_int_equal(ofp_endpoint_hook_report(side.endpoint, "fault", json, sizeof(json)), -ENOENT);
    side_close(&side);
    assert_int_equal(seen.closed, 2);
}

static void test_a_hook_refuses_an_endpoint(void **state)
{
    struct side side;
    struct ofp_endpoint_attr attr = {0};
    struct ofp_endpoint *endpoint;
    char text[OFP_TEXT_MAX];

    (void)state;
    hooked_side_open(&side, "witness", false);
    attr.tx_cq = attr.rx_cq = side.cq;
    attr.av = side.av;
    asked.open_error = -ENOSPC;
    assert_int_equal(ofp_endpoint_open(side.domain, &attr, &endpoint, text, sizeof(text)), -ENOSPC);
    assert_string_equal(text, "hook witness: not today");
    side_close(&side);
    assert_int_equal(seen.closed, 1);
}

static void test_a_hook_outside_the_tree_is_loaded(void **state)
{
    struct side side;
    char text[OFP_TEXT_MAX] = "";
    const struct ofp_hook *hook;

    (void)state;
    assert_int_equal(ofp_hook_load("/nowhere/hook.so", text, sizeof(text)), -ENOENT);
    assert_non_null(strstr(text, "/nowhere/hook.so"));
    assert_int_equal(ofp_hook_load(HOOK_MODULE, text, sizeof(text)), 0);
    assert_int_equal(ofp_hook_load(HOOK_MODULE, text, sizeof(text)), 0);
    hook = ofpi_hook_find("outside", strlen("outside"));
    assert_non_null(hook);
    assert_null(hook->released);
    hooked_side_open(&side, "outside", false);
    request_tsend(side.endpoint, "x", 1, side.peer, 1);
    side_close(&side);
}

static const struct ofp_hook *old_entry(const struct ofp_hook_core *given)
{
    static struct ofp_hook old;

    (void)given;
    old = witness;
    old.abi = OFP_HOOK_ABI + 1;
    old.name = "old";
    return &old;
}

static void test_a_table_of_another_version_is_refused(void **state)
{
    char text[OFP_TEXT_MAX] = "";

    (void)state;
    assert_int_equal(ofpi_hook_register(old_entry, text, sizeof(text)), -ENOTSUP);
    assert_non_null(strstr(text, "build it again"));
    expect_refusal("old", "no hook \"old\"");
}

/* --------------------------------------------------------------------------------------------------------- operations */

static void see_each_once(bool offloads_matching)
{
    struct side side;
    char out[32] = "payload", in[32];
    uint64_t before = ofp_hooks_operations();

    hooked_side_open(&side, "witness;witness", offloads_matching);
    for (uint64_t i = 0; i < 100; i++) {
        post_one(&side, tagged(OFP_TRECV, OFP_PEER_ANY, i, in, sizeof(in), 1));
        post_one(&side, tagged(OFP_TSEND, side.peer, i, out, sizeof(out), 2));
        assert_int_equal(next_completion(&side, NULL).error, 0);
        assert_int_equal(next_completion(&side, NULL).error, 0);
    }
    assert_int_equal(seen.posted, 400);
    assert_int_equal(seen.completed, 400);
    assert_int_equal(seen.refused, 0);
    assert_int_equal(seen.order[0], 0);
    assert_int_equal(seen.order[1], 1);
    assert_int_equal(ofp_hooks_operations() - before, 200);
    side_close(&side);
}

static void test_each_operation_is_seen_once(void **state)
{
    (void)state;
    see_each_once(false);
    memset(&seen, 0, sizeof(seen));
    see_each_once(true);
}

static void test_what_the_core_refuses_is_told(void **state)
{
    struct side side;
    char in[8];
    struct ofp_operation op;

    (void)state;
    hooked_side_open(&side, "witness", true);
    op = tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), 1);
    op.peer = 77;
    assert_true(ofp_post(side.endpoint, &op, 1) < 0);
    assert_int_equal(seen.posted, seen.refused);
    assert_int_equal(seen.completed, 0);
    side_close(&side);
}

static void test_requests_and_cancelling(void **state)
{
    struct side side;
    char in[8], out[8] = "request";
    ofp_request_t receive;

    (void)state;
    hooked_side_open(&side, "witness", false);
    receive = request_trecv(side.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);
    assert_int_equal(ofp_request_cancel(receive), 0);
    assert_int_equal(request_take(receive, -1).error, ECANCELED);
    receive = request_trecv(side.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);
    request_tsend(side.endpoint, out, sizeof(out), side.peer, 1);
    assert_int_equal(request_take(receive, -1).error, 0);
    assert_string_equal(in, "request");
    assert_int_equal(seen.posted, 3);
    assert_int_equal(seen.completed, 3);
    side_close(&side);
}

static void test_a_message_of_unknown_size(void **state)
{
    struct side side;
    struct ofp_operation op;
    char in[8], out[8] = "unknown";
    ofp_request_t receive;

    (void)state;
    hooked_side_open(&side, "witness", false);
    op = tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, 0);
    op.flags = OFP_HOLD | OFP_CLAIM;
    op.region = OFP_REGION_PROCESS;
    receive = request_start(side.endpoint, &op);
    request_tsend(side.endpoint, out, sizeof(out), side.peer, 1);
    assert_int_equal(ofp_request_wait(receive, -1), 1);
    assert_int_equal(ofp_request_claim(receive, OFP_REGION_PROCESS, (uint64_t)(uintptr_t)in, sizeof(in)), 0);
    assert_int_equal(request_take(receive, -1).error, 0);
    assert_string_equal(in, "unknown");
    assert_int_equal(seen.posted, seen.completed);
    side_close(&side);
}

static void test_a_multi_receive_ends_once(void **state)
{
    struct side side;
    struct ofp_operation op;
    char in[256], out[100] = "many";

    (void)state;
    hooked_side_open(&side, "witness", false);
    op = tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, sizeof(in), 1);
    op.flags = OFP_MULTI_RECV;
    post_one(&side, op);
    for (int i = 0; i < 2; i++) {
        op = tagged(OFP_TSEND, side.peer, 1, out, sizeof(out), 2);
        post_one(&side, op);
    }
    for (int i = 0; i < 4; i++)
        next_completion(&side, NULL);
    assert_int_equal(seen.more, 1);
    assert_int_equal(seen.completed, 3);
    side_close(&side);
}

static void test_what_is_under_way_ends_with_the_endpoint(void **state)
{
    struct side side;
    struct ofp_operation op;
    char in[256];

    (void)state;
    hooked_side_open(&side, "witness", false);
    post_one(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, sizeof(in), 1));
    op = tagged(OFP_TRECV, OFP_PEER_ANY, 2, in, sizeof(in), 1);
    op.flags = OFP_MULTI_RECV;
    post_one(&side, op);
    asked.delay = 10000 * MS;
    post_one(&side, tagged(OFP_TSEND, side.peer, 1, in, 8, 1));
    assert_int_equal(seen.completed, 0);
    side_close(&side);
    assert_int_equal(seen.posted, 3);
    assert_int_equal(seen.completed, 3);
}

/* ----------------------------------------------------------------------------------------------------------- verdicts */

static void fail_all(bool offloads_matching)
{
    struct side side;
    struct ofp_operation op;
    struct ofp_completion row;
    char memory[256] = "x";

    hooked_side_open(&side, "witness;witness", offloads_matching);
    asked.error = ENOSPC;
    op = tagged(OFP_TRECV, OFP_PEER_ANY, 1, memory, sizeof(memory), 5);
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            op.flags = OFP_MULTI_RECV;
        else if (i == 2)
            op = tagged(OFP_TSEND, side.peer, 1, memory, 8, 5);
        post_one(&side, op);
        row = next_completion(&side, NULL);
        assert_int_equal(row.error, ENOSPC);
        assert_int_equal(row.context, 5);
        assert_string_equal(reason_of(&row), "hook witness: it was asked to");
        if (i == 1)
            assert_true(row.flags & OFP_COMPLETED_MULTI_RECV);
    }
    /* The second one, further away, was not asked. */
    assert_int_equal(seen.posted, 3);
    assert_int_equal(seen.completed, 3);
    side_close(&side);
}

static void test_a_failure_is_a_completion_with_a_reason(void **state)
{
    (void)state;
    fail_all(false);
    setup(state);
    fail_all(true);
}

static void test_what_is_held_back_keeps_its_order(void **state)
{
    struct side side;
    char in[2], out[] = {'1', '2', '3'};
    uint64_t begun = ofpi_now();

    (void)state;
    hooked_side_open(&side, "witness", false);
    for (int i = 0; i < 3; i++) {
        asked.delay = i == 1 ? 0 : 20 * MS;
        post_one(&side, tagged(OFP_TSEND, side.peer, 1, &out[i], 1, 2));
    }
    asked.delay = 0;
    for (int i = 0; i < 3; i++) {
        ofp_request_t receive = request_trecv(side.endpoint, in, 1, OFP_PEER_ANY, 1);

        assert_int_equal(request_take(receive, -1).error, 0);
        assert_int_equal(in[0], out[i]);
    }
    assert_true(ofpi_now() - begun >= 20 * MS);
    side_close(&side);
    assert_int_equal(seen.posted, seen.completed);
}

static void test_what_waits_behind_a_cancelled_one_goes_on(void **state)
{
    struct side side;
    char in[1], out[2] = "12";
    uint64_t begun = ofpi_now();
    ofp_request_t receive;

    (void)state;
    hooked_side_open(&side, "witness", false);
    asked.delay = 60000 * MS;
    post_one(&side, tagged(OFP_TSEND, side.peer, 1, &out[0], 1, 71));
    asked.delay = 0;
    post_one(&side, tagged(OFP_TSEND, side.peer, 1, &out[1], 1, 72));
    assert_int_equal(ofp_cancel(side.endpoint, 71), 0);
    receive = request_trecv(side.endpoint, in, 1, OFP_PEER_ANY, 1);
    assert_int_equal(request_take(receive, -1).error, 0);
    assert_int_equal(in[0], '2');
    assert_true(ofpi_now() - begun < 30000 * MS);
    side_close(&side);
}

static void test_a_held_back_inject_is_a_copy(void **state)
{
    struct side side;
    struct ofp_operation op;
    char in[8], out[8] = "inject";
    ofp_request_t receive;

    (void)state;
    hooked_side_open(&side, "witness", false);
    asked.delay = 5 * MS;
    op = tagged(OFP_TSEND, side.peer, 1, out, sizeof(out), 2);
    op.flags = OFP_INJECT;
    post_one(&side, op);
    memset(out, 'z', sizeof(out));
    receive = request_trecv(side.endpoint, in, sizeof(in), OFP_PEER_ANY, 1);
    assert_int_equal(request_take(receive, -1).error, 0);
    assert_string_equal(in, "inject");
    assert_int_equal(seen.released, 1);
    side_close(&side);
}

static void test_a_peer_is_lost_and_comes_again(void **state)
{
    struct side side;
    struct ofp_completion row;
    char in[8], out[8] = "again";
    struct ofpi_peer *peer;
    ofp_request_t receive;
    uint32_t changes;

    (void)state;
    hooked_side_open(&side, "witness", false);
    request_tsend(side.endpoint, out, sizeof(out), side.peer, 1);
    peer = ofpi_peer_at((struct ofpi_endpoint *)side.endpoint, side.peer);
    assert_int_equal(peer->base.state, OFP_PEER_UP);
    changes = seen.peers_changed;
    asked.lose = true;
    asked.delay = 1000 * MS;
    post_one(&side, tagged(OFP_TSEND, side.peer, 1, out, sizeof(out), 2));
    asked.lose = false;
    asked.delay = 0;
    assert_int_equal(peer->base.state, OFP_PEER_LOST);
    assert_int_equal(seen.peers_changed, changes + 1);
    row = next_completion(&side, NULL);
    assert_int_equal(row.error, OFP_EPEERLOST);
    assert_string_equal(reason_of(&row), "hook witness: lost by the witness");
    post_one(&side, tagged(OFP_TSEND, side.peer, 2, out, sizeof(out), 2));
    receive = request_trecv(side.endpoint, in, sizeof(in), OFP_PEER_ANY, 2);
    assert_int_equal(request_take(receive, -1).error, 0);
    /* The hook's bytes were zeroed with the transport's: they count what was posted since. */
    assert_true(((struct mark *)((char *)peer->base.private + ofpi_peer_private_size(side.endpoint)))->number <= 1);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_lists_are_read, setup),
        cmocka_unit_test_setup(test_what_there_is_not_is_refused_by_name, setup),
        cmocka_unit_test_setup(test_a_domain_refuses_a_list, setup),
        cmocka_unit_test_setup(test_options_reach_the_hook, setup),
        cmocka_unit_test_setup(test_a_hook_refuses_an_endpoint, setup),
        cmocka_unit_test_setup(test_a_hook_outside_the_tree_is_loaded, setup),
        cmocka_unit_test_setup(test_a_table_of_another_version_is_refused, setup),
        cmocka_unit_test_setup(test_each_operation_is_seen_once, setup),
        cmocka_unit_test_setup(test_what_the_core_refuses_is_told, setup),
        cmocka_unit_test_setup(test_requests_and_cancelling, setup),
        cmocka_unit_test_setup(test_a_message_of_unknown_size, setup),
        cmocka_unit_test_setup(test_a_multi_receive_ends_once, setup),
        cmocka_unit_test_setup(test_what_is_under_way_ends_with_the_endpoint, setup),
        cmocka_unit_test_setup(test_a_failure_is_a_completion_with_a_reason, setup),
        cmocka_unit_test_setup(test_what_is_held_back_keeps_its_order, setup),
        cmocka_unit_test_setup(test_what_waits_behind_a_cancelled_one_goes_on, setup),
        cmocka_unit_test_setup(test_a_held_back_inject_is_a_copy, setup),
        cmocka_unit_test_setup(test_a_peer_is_lost_and_comes_again, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
