/* SPDX-License-Identifier: BSD-3-Clause */
/* Aliases of endpoints, over both kinds of the fake provider's endpoints. */
#include "request_fixture.h"

#include "completion/counter.h"

static struct ofp_endpoint *alias_of(struct ofp_endpoint *endpoint, uint64_t tx_flags, uint64_t rx_flags)
{
    struct ofp_endpoint *alias;

    assert_int_equal(ofp_endpoint_alias(endpoint, tx_flags, rx_flags, &alias), 0);
    return alias;
}

/* An endpoint that is its own peer, with these defaults. */
static void open_defaults(struct side *side, bool offloads_matching, uint64_t tx_flags, uint32_t selective)
{
    struct ofp_endpoint_attr attr = {.tx_flags = tx_flags, .selective_completion = selective};
    char text[OFP_TEXT_MAX], address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    side_open(side, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    assert_int_equal(ofp_endpoint_close(side->endpoint, 1000000000), 0);
    attr.tx_cq = attr.rx_cq = side->cq;
    attr.av = side->av;
    assert_int_equal(ofp_endpoint_open(side->domain, &attr, &side->endpoint, text, sizeof(text)), 0);
    assert_int_equal(ofp_endpoint_address(side->endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(side->av, address, length, &side->peer), 0);
}

/* Whether a send through this handle waits for the receive, as one that is match complete does. */
static bool send_waits(struct side *side, struct ofp_endpoint *handle, uint64_t flags)
{
    char in[8], out[8] = "matched";
    struct ofp_operation send = tagged(OFP_TSEND, side->peer, 5, out, sizeof(out), 0);
    struct ofp_operation receive = tagged(OFP_TRECV, side->peer, 5, in, sizeof(in), 0);
    ofp_request_t sent, received;
    bool waits;

    send.flags = flags;
    sent = request_start(handle, &send);
    assert_true(sent >= 0);
    for (int i = 0; i < 10; i++)
        ofp_domain_progress(side->domain);
    waits = sent > 0 && !ofp_request_finished(sent);
    received = request_start(side->endpoint, &receive);
    assert_true(received > 0);
    assert_int_equal(ofp_request_wait(received, -1), 1);
    ofp_request_abandon(received, false);
    if (sent) {
        assert_int_equal(ofp_request_wait(sent, -1), 1);
        ofp_request_abandon(sent, false);
    }
    return waits;
}

static void test_flags_replace_the_endpoints(void **state)
{
    (void)state;
    for (int offloads = 0; offloads < 2; offloads++) {
        struct side side;
        struct ofp_endpoint *plain, *matched;

        open_defaults(&side, offloads, OFP_MATCH_COMPLETE, 0);
        plain = alias_of(side.endpoint, 0, 0);
        matched = alias_of(plain, OFP_MATCH_COMPLETE, 0);
        assert_true(send_waits(&side, side.endpoint, 0));
        assert_false(send_waits(&side, plain, 0));
        assert_true(send_waits(&side, matched, 0));
        /* A record's own level wins over both. */
        assert_true(send_waits(&side, plain, OFP_MATCH_COMPLETE));
        assert_false(send_waits(&side, matched, OFP_TRANSMIT_COMPLETE));
        assert_int_equal(ofp_endpoint_close(plain, 0), 0);
        assert_int_equal(ofp_endpoint_close(matched, 0), 0);
        side_close(&side);
    }
}

/* Through every way in: a post, a deferred one, plain arguments, a prepared operation. */
static void test_every_way_in(void **state)
{
    struct side side;
    struct ofp_endpoint *alias;
    struct ofp_counter *counter;
    struct ofp_counter_attr counter_attr = {0};
    struct ofp_operation send, receive;
    struct ofp_completion row;
    ofp_request_t request;
    char in[8], out[8] = "matched";

    (void)state;
    open_defaults(&side, false, 0, OFP_SELECTIVE_TRANSMIT | OFP_SELECTIVE_RECEIVE);
    alias = alias_of(side.endpoint, OFP_COMPLETION, OFP_COMPLETION);
    assert_int_equal(ofp_counter_open(side.domain, &counter_attr, &counter), 0);
    send = tagged(OFP_TSEND, side.peer, 5, out, sizeof(out), 1);
    receive = tagged(OFP_TRECV, side.peer, 5, in, sizeof(in), 2);
    assert_int_equal(ofp_post(side.endpoint, &send, 1), 1);
    assert_int_equal(ofp_post(alias, &receive, 1), 1);
    row = next_completion(&side, NULL);
    assert_int_equal(row.context, 2);
    assert_int_equal(row.endpoint, ofp_endpoint_id(side.endpoint));
    assert_int_equal(ofp_post_after(alias, &send, 1, counter, 1), 1);
    assert_int_equal(ofp_post(side.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    assert_int_equal(next_completion(&side, NULL).context, 1);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 0);
    assert_int_equal(ofp_counter_close(counter), 0);
    assert_int_equal(ofp_endpoint_close(alias, 0), 0);

    alias = alias_of(side.endpoint, OFP_MATCH_COMPLETE, 0);
    request = request_tsend(alias, out, sizeof(out), side.peer, 5);
    assert_true(request > 0);
    assert_int_equal(request_test(request), 0);
    assert_int_equal(ofp_post(side.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_request_wait(request, -1), 1);
    ofp_request_abandon(request, false);
    request = ofp_prepare(alias, &send);
    assert_true(request > 0);
    /* Prepared operations outlive the alias that they were prepared through. */
    assert_int_equal(ofp_endpoint_close(alias, 0), 0);
    assert_int_equal(ofp_start(request, 0, -1), 0);
    assert_int_equal(request_test(request), 0);
    assert_int_equal(ofp_post(side.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_request_wait(request, -1), 1);
    ofp_request_abandon(request, false);
    side_close(&side);
}

static uint64_t option_of(struct ofp_endpoint *endpoint, const char *name)
{
    uint64_t value = UINT64_MAX;

    assert_int_equal(ofp_endpoint_option_get(endpoint, name, &value), 0);
    return value;
}

static void test_it_is_the_endpoint(void **state)
{
    struct side side;
    struct ofp_endpoint *alias;
    struct ofp_endpoint_statistics statistics;
    struct ofp_operation receive;
    char address[OFP_ADDRESS_MAX], same[OFP_ADDRESS_MAX], in[8];
    size_t length = sizeof(address), same_length = sizeof(same);

    (void)state;
    open_defaults(&side, false, OFP_INJECT, 0);
    alias = alias_of(side.endpoint, OFP_DELIVERY_COMPLETE, OFP_COMPLETION);
    assert_int_equal(ofp_endpoint_id(alias), ofp_endpoint_id(side.endpoint));
    assert_int_equal(ofp_endpoint_address(side.endpoint, address, &length), 0);
    assert_int_equal(ofp_endpoint_address(alias, same, &same_length), 0);
    assert_int_equal(length, same_length);
    assert_memory_equal(address, same, length);
    assert_int_equal(ofp_endpoint_option_set(alias, "tx_size", 17), 0);
    assert_int_equal(option_of(side.endpoint, "tx_size"), 17);
    assert_int_equal(option_of(alias, "tx_flags"), OFP_DELIVERY_COMPLETE);
    assert_int_equal(option_of(alias, "rx_flags"), OFP_COMPLETION);
    assert_int_equal(ofp_endpoint_option_set(alias, "tx_flags", 0), 0);
    assert_int_equal(option_of(alias, "tx_flags"), 0);
    assert_int_equal(option_of(side.endpoint, "tx_flags"), OFP_INJECT);
    /* What one handle has posted the other cancels. */
    receive = tagged(OFP_TRECV, side.peer, 5, in, sizeof(in), 3);
    assert_int_equal(ofp_post(alias, &receive, 1), 1);
    assert_int_equal(ofp_endpoint_statistics(alias, &statistics), 0);
    assert_int_equal(statistics.posted_receives, 1);
    assert_int_equal(ofp_cancel(side.endpoint, 3), 0);
    assert_int_equal(next_completion(&side, NULL).error, ECANCELED);
    assert_int_equal(ofp_post(side.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_cancel(alias, 3), 0);
    assert_int_equal(next_completion(&side, NULL).error, ECANCELED);
    assert_int_equal(ofp_endpoint_close(alias, 0), 0);
    side_close(&side);
}

static void test_its_end(void **state)
{
    struct side side;
    struct ofp_endpoint *alias, *none;
    struct ofp_operation operations[2];
    struct ofp_endpoint_statistics statistics;
    char in[8];
    uint64_t value;

    (void)state;
    open_defaults(&side, false, 0, 0);
    assert_int_equal(ofp_endpoint_alias(side.endpoint, OFP_FENCE, 0, &none), -EINVAL);
    assert_int_equal(ofp_endpoint_alias(side.endpoint, 0, OFP_PEEK, &none), -EINVAL);
    alias = alias_of(side.endpoint, 0, 0);
    operations[0] = tagged(OFP_TRECV, side.peer, 5, in, sizeof(in), 3);
    operations[1] = tagged(OFP_TSEND, side.peer, 5, in, sizeof(in), 3);
    assert_int_equal(ofp_post(alias, operations, 1), 1);
    assert_int_equal(ofp_endpoint_retire(side.endpoint, 0), -EBUSY);
    assert_int_equal(ofp_endpoint_retire(alias, 0), 0);
    assert_int_equal(ofp_endpoint_retire(alias, 0), -ECANCELED);
    assert_int_equal(ofp_post(alias, operations, 2), -ECANCELED);
    assert_int_equal(request_start(alias, operations), -ECANCELED);
    assert_int_equal(ofp_prepare(alias, operations), -ECANCELED);
    assert_int_equal(ofp_cancel(alias, 3), -ECANCELED);
    assert_int_equal(ofp_endpoint_option_get(alias, "tx_flags", &value), -ECANCELED);
    assert_int_equal(ofp_endpoint_alias(alias, 0, 0, &none), -ECANCELED);
    /* What was posted through it goes on. */
    assert_int_equal(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
    assert_int_equal(statistics.posted_receives, 1);
    assert_int_equal(ofp_post(side.endpoint, &operations[1], 1), 1);
    assert_int_equal(next_completion(&side, NULL).error, 0);
    assert_int_equal(next_completion(&side, NULL).error, 0);
    ofp_endpoint_free(alias);
    side_close(&side);
}

/* A receive context is no endpoint that one could name or send from. */
static void test_not_of_a_receive_context(void **state)
{
    struct side side;
    struct ofp_receive_context_attr attr = {0};
    struct ofp_endpoint *context, *alias;
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    (void)state;
    open_defaults(&side, false, 0, 0);
    attr.cq = side.cq;
    attr.av = side.av;
    assert_int_equal(ofp_receive_context_open(side.domain, &attr, &context), 0);
    assert_int_equal(ofp_endpoint_alias(context, 0, 0, &alias), -EOPNOTSUPP);
    assert_int_equal(ofp_endpoint_address(context, address, &length), -EOPNOTSUPP);
    assert_int_equal(ofp_receive_context_close(context), 0);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_replace_the_endpoints), cmocka_unit_test(test_every_way_in),
        cmocka_unit_test(test_it_is_the_endpoint),          cmocka_unit_test(test_its_end),
        cmocka_unit_test(test_not_of_a_receive_context),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
