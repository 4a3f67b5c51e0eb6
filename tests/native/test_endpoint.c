/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting, completing, cancelling and closing through the public calls, over both kinds of fake endpoint. */
#include "core_fixture.h"

static struct side a, b;

static int open_matched(void **state)
{
    (void)state;
    side_open(&a, false, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&a, &b);
    return 0;
}

static int open_offloaded(void **state)
{
    (void)state;
    side_open(&a, true, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, true, OFP_PROGRESS_MANUAL, 64);
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

static void test_expected_message(void **state)
{
    char out[8] = "message", in[8] = "";
    struct ofp_operation send = tagged(OFP_TSEND, a.peer, 7, out, 8, 1);
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 7, in, 8, 2);
    struct ofp_completion row;

    (void)state;
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    row = next_completion(&b, &a);
    assert_int_equal(row.context, 2);
    assert_int_equal(row.error, 0);
    assert_int_equal(row.length, 8);
    assert_int_equal(row.tag, 7);
    assert_int_equal(row.source, b.peer);
    assert_string_equal(in, "message");
    assert_int_equal(next_completion(&a, &b).context, 1);
}

static void test_unexpected_message(void **state)
{
    char out[64], in[64];
    struct ofp_operation send = tagged(OFP_TSEND, a.peer, 9, out, sizeof(out), 1);
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 9, in, sizeof(in), 2);

    (void)state;
    memset(out, 'u', sizeof(out));
    assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    next_completion(&a, &b);
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    assert_int_equal(next_completion(&b, &a).length, sizeof(out));
    assert_memory_equal(in, out, sizeof(out));
}

static void test_large_message(void **state)
{
    size_t size = 1 << 20;
    char *out = malloc(size), *in = malloc(size);
    struct ofp_operation send = tagged(OFP_TSEND, a.peer, 1, out, size, 1);
    struct ofp_operation receive = tagged(OFP_TRECV, b.peer, 1, in, size, 2);
    struct ofp_completion row;

    (void)state;
    memset(out, 'x', size);
    assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    row = next_completion(&b, &a);
    assert_int_equal(row.error, 0);
    assert_int_equal(row.length, size);
    assert_memory_equal(in, out, size);
    assert_int_equal(next_completion(&a, &b).context, 1);
    free(out);
    free(in);
}

static void test_truncation_tells_true_length(void **state)
{
    char out[100], in[10];
    struct ofp_operation send = tagged(OFP_TSEND, a.peer, 1, out, sizeof(out), 1);
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, sizeof(in), 2);
    struct ofp_completion row;

    (void)state;
    memset(out, 't', sizeof(out));
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    row = next_completion(&b, &a);
    assert_int_equal(row.error, OFP_ETRUNC);
    assert_int_equal(row.length, sizeof(out));
    assert_memory_equal(in, out, sizeof(in));
}

static void test_cancel(void **state)
{
    char in[8];
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, 8, 77);
    struct ofp_completion row;

    (void)state;
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_cancel(b.endpoint, 76), -ENOENT);
    assert_int_equal(ofp_cancel(b.endpoint, 77), 0);
    row = next_completion(&b, NULL);
    assert_int_equal(row.context, 77);
    assert_int_equal(row.error, ECANCELED);
}

static void test_batch_accepts_a_prefix(void **state)
{
    char out[8] = "", in[8];
    struct ofp_operation batch[3] = {
        tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, 8, 1),
        tagged(OFP_TSEND, b.peer, 1, out, 8, 2),
        tagged(OFP_TSEND, 4000, 1, out, 8, 3), /* no such address */
    };

    (void)state;
    assert_int_equal(ofp_post(b.endpoint, batch, 3), 2);
    assert_int_equal(ofp_post(b.endpoint, batch + 2, 1), -OFP_EADDRNOTAVAIL);
    batch[0].op = 99;
    assert_int_equal(ofp_post(b.endpoint, batch, 1), -EINVAL);
    batch[1].region = 12345;
    assert_int_equal(ofp_post(b.endpoint, batch + 1, 1), -OFP_ENOREGION);
    assert_int_equal(ofp_cancel(b.endpoint, 1), 0);
}

static void test_region_bounds_and_use(void **state)
{
    char memory[64];
    uint32_t region;
    struct ofp_region_attr attr = {.base = memory, .length = sizeof(memory), .access = OFP_ACCESS_RECV};
    struct ofp_region_handle handle;
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 64, 1);

    (void)state;
    assert_int_equal(ofp_region_register(b.domain, &attr, &handle), 0);
    region = handle.id;
    receive.region = region;
    receive.offset = 1;
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), -ERANGE);
    receive.offset = 0;
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_region_close(b.domain, region), -EBUSY);
    assert_int_equal(ofp_cancel(b.endpoint, 1), 0);
    assert_int_equal(ofp_region_close(b.domain, region), 0);
    assert_int_equal(ofp_region_close(b.domain, region), -OFP_ENOREGION);
}

static void test_queue_keeps_more_than_its_size(void **state)
{
    enum { COUNT = 1000 };
    static char in[COUNT][8];

    (void)state;
    for (uint64_t i = 0; i < COUNT; i++) {
        struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, i, in[i], 8, i);
        struct ofp_operation send = tagged(OFP_TSEND, a.peer, i, &i, 8, i);

        send.flags = OFP_INJECT;
        assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
        assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
        ofp_domain_progress(a.domain);
        ofp_domain_progress(b.domain);
    }
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(next_completion(&b, &a).context, i);
}

static void test_children_keep_the_domain_open(void **state)
{
    (void)state;
    assert_int_equal(ofp_domain_close(a.domain), -EBUSY);
    assert_int_equal(ofp_cq_close(a.cq), -EBUSY);
    assert_int_equal(ofp_av_close(a.av), -EBUSY);
}

static int two_more(struct ofp_endpoint *endpoint, uint32_t number, void *address, size_t *length)
{
    (void)endpoint;
    if (number == 2)
        return -ENOENT;
    memset(address, (int)number, 4);
    *length = 4;
    return 0;
}

/* What an endpoint says of itself: addresses beside the first one, and who it is. */
static void test_name(void **state)
{
    uint8_t identity[OFP_IDENTITY_SIZE], other[OFP_IDENTITY_SIZE], zeros[OFP_IDENTITY_SIZE] = {0};
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);
    const struct ofp_endpoint_ops *own = a.endpoint->ops;
    struct ofp_endpoint_ops ops = *own;

    (void)state;
    assert_int_equal(ofp_endpoint_address_also(a.endpoint, 0, address, &length), -ENOENT);
    ops.name_also = two_more;
    a.endpoint->ops = &ops;
    for (uint32_t number = 0; number < 2; number++) {
        assert_int_equal(ofp_endpoint_address_also(a.endpoint, number, address, &length), 0);
        assert_int_equal(length, 4);
        assert_int_equal(address[3], number);
    }
    assert_int_equal(ofp_endpoint_address_also(a.endpoint, 2, address, &length), -ENOENT);
    ofp_endpoint_identity(a.endpoint, identity);
    ofp_endpoint_identity(a.endpoint, other);
    assert_memory_equal(identity, other, sizeof(identity));
    assert_memory_not_equal(identity, zeros, sizeof(identity));
    ofp_endpoint_identity(b.endpoint, other);
    assert_memory_not_equal(identity, other, sizeof(identity));
    a.endpoint->ops = own;
}

static void test_close_cancels_what_is_posted(void **state)
{
    char in[8];
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, in, 8, 5);
    struct ofp_completion row;

    (void)state;
    assert_int_equal(ofp_post(a.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_endpoint_close(a.endpoint, 0), 0);
    assert_int_equal(ofp_cq_read(a.cq, &row, 1), 1);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.error, ECANCELED);
    assert_int_equal(ofp_av_close(a.av), 0);
    assert_int_equal(ofp_cq_close(a.cq), 0);
    assert_int_equal(ofp_domain_close(a.domain), 0);
    side_open(&a, false, OFP_PROGRESS_MANUAL, 64);
}

#define BOTH(test)                                                                                                     \
    {#test " core-matched", test, open_matched, close_both, NULL},                                                     \
    {                                                                                                                  \
        #test " provider-matched", test, open_offloaded, close_both, NULL                                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_expected_message),
        BOTH(test_unexpected_message),
        BOTH(test_large_message),
        BOTH(test_truncation_tells_true_length),
        BOTH(test_cancel),
        BOTH(test_batch_accepts_a_prefix),
        BOTH(test_region_bounds_and_use),
        BOTH(test_queue_keeps_more_than_its_size),
        BOTH(test_name),
        BOTH(test_children_keep_the_domain_open),
        {"test_close_cancels_what_is_posted", test_close_cancels_what_is_posted, open_matched, close_both, NULL},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
