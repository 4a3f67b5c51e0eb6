/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's side of hooks: the list, and what the hooks of an endpoint are told. */
#include "hook_witness.h"
#include "hook/hooks.h"

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
    struct ofp_completion completion;
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
    assert_int_equal(ofp_request_claim(receive, OFP_REGION_PROCESS, (uint64_t)(uintptr_t)in, sizeof(in), &completion),
                     1);
    assert_int_equal(completion.error, 0);
    assert_int_equal(ofp_request_accept(receive, false), 0);
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
