/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues through the public calls. */
#include "core_fixture.h"

#include <poll.h>

static struct ofp_eq *eq_open(struct ofp_domain *domain, uint64_t size)
{
    struct ofp_eq_attr attr = {.size = size};
    struct ofp_eq *eq;

    assert_int_equal(ofp_eq_open(domain, &attr, &eq), 0);
    return eq;
}

static void test_written_events_come_back(void **state)
{
    struct side side;
    struct ofp_eq *eq;
    struct ofp_event event = {.context = 1, .data_length = 3}, got;
    char data[OFP_EVENT_DATA_MAX];
    bool expired;

    (void)state;
    assert_int_equal(sizeof(event), 64);
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    eq = eq_open(side.domain, 2);
    assert_int_equal(ofp_eq_read(eq, &got, data), 0);
    assert_int_equal(ofp_eq_wait(eq, &got, data, 1000000, &expired), 0);
    assert_true(expired);
    assert_int_equal(ofp_eq_write(eq, &event, "abc"), 0);
    event.context = 2;
    event.data_length = 0;
    assert_int_equal(ofp_eq_write(eq, &event, NULL), 0);
    assert_int_equal(ofp_eq_write(eq, &event, NULL), -EAGAIN);
    event.data_length = OFP_EVENT_DATA_MAX + 1;
    assert_int_equal(ofp_eq_write(eq, &event, data), -EMSGSIZE);
    assert_int_equal(ofp_eq_peek(eq, &got, data), 1);
    assert_int_equal(got.context, 1);
    memset(data, 0, sizeof(data));
    assert_int_equal(ofp_eq_wait(eq, &got, data, -1, &expired), 1);
    assert_int_equal(got.context, 1);
    assert_memory_equal(data, "abc", 3);
    assert_int_equal(ofp_eq_read(eq, &got, data), 1);
    assert_int_equal(got.context, 2);
    assert_int_equal(ofp_domain_close(side.domain), -EBUSY);
    assert_int_equal(ofp_eq_retire(eq), 0);
    assert_int_equal(ofp_eq_read(eq, &got, data), -ECANCELED);
    ofp_eq_free(eq);
    side_close(&side);
}

static void test_the_descriptor(void **state)
{
    struct side side;
    struct ofp_eq *eq;
    struct ofp_event event = {0};
    char data[OFP_EVENT_DATA_MAX];
    struct pollfd entry = {.events = POLLIN};

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    eq = eq_open(side.domain, 0);
    entry.fd = ofp_eq_fileno(eq);
    assert_true(entry.fd >= 0);
    assert_int_equal(ofp_eq_arm(eq), 1);
    assert_int_equal(poll(&entry, 1, 0), 0);
    assert_int_equal(ofp_eq_write(eq, &event, NULL), 0);
    assert_int_equal(poll(&entry, 1, 5000), 1);
    assert_int_equal(ofp_eq_arm(eq), 0);
    assert_int_equal(ofp_eq_read(eq, &event, data), 1);
    assert_int_equal(ofp_eq_arm(eq), 1);
    assert_int_equal(ofp_eq_close(eq), 0);
    side_close(&side);
}

static void test_peers_are_told_of(void **state)
{
    struct side side, other;
    struct ofp_eq *eq;
    struct ofp_endpoint_attr attr = {0};
    struct ofp_operation send;
    struct ofp_event event;
    char text[OFP_TEXT_MAX], data[OFP_EVENT_DATA_MAX];
    bool expired;

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    side_open(&other, false, OFP_PROGRESS_AUTO, 64);
    assert_int_equal(ofp_endpoint_close(side.endpoint, 0), 0);
    /* A queue of one: the core's events go beyond. */
    eq = eq_open(side.domain, 1);
    attr.tx_cq = attr.rx_cq = side.cq;
    attr.av = side.av;
    attr.eq = eq;
    assert_int_equal(ofp_endpoint_open(side.domain, &attr, &side.endpoint, text, sizeof(text)), 0);
    assert_int_equal(ofp_eq_close(eq), -EBUSY);
    sides_meet(&side, &other);
    send = tagged(OFP_TSEND, side.peer, 1, NULL, 0, 0);
    assert_int_equal(ofp_post(side.endpoint, &send, 1), 1);
    assert_int_equal(next_completion(&side, NULL).error, 0);
    side_close(&other);
    for (uint32_t kind = OFP_EVENT_PEER_UP; kind <= OFP_EVENT_PEER_LOST; kind++) {
        assert_int_equal(ofp_eq_wait(eq, &event, data, 1000000000, &expired), 1);
        assert_int_equal(event.kind, kind);
        assert_int_equal(event.peer, side.peer);
        assert_int_equal(event.endpoint, ofp_endpoint_id(side.endpoint));
        assert_int_equal(event.error != 0, kind == OFP_EVENT_PEER_LOST);
    }
    assert_int_equal(ofp_endpoint_close(side.endpoint, 0), 0);
    assert_int_equal(ofp_eq_close(eq), 0);
    assert_int_equal(ofp_av_close(side.av), 0);
    assert_int_equal(ofp_cq_close(side.cq), 0);
    assert_int_equal(ofp_domain_close(side.domain), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_events_come_back),
        cmocka_unit_test(test_the_descriptor),
        cmocka_unit_test(test_peers_are_told_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
