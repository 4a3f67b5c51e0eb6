/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are completed here, and have not reached the peer's device when the time of a close is over, are told.
 * The channel keeps packets back meanwhile.
 */
#include "rdm_fixture.h"

enum { FEW = 3, LENGTH = 3000 };

static struct side a, b;
static uint8_t memory[LENGTH], room[LENGTH];
static struct ofp_region_handle region;

static void meet_sides(enum rdmfake_kind kind)
{
    struct ofp_region_attr attr = {.base = room, .length = LENGTH, .access = OFP_ACCESS_REMOTE_WRITE};
    struct ofp_operation op;

    rdm_side_open(&a, kind, 0);
    rdm_side_open(&b, kind, 0);
    sides_meet(&a, &b);
    assert_int_equal(ofp_region_register(b.domain, &attr, &region), 0);
    op = tagged(OFP_TSEND, a.peer, 1, memory, 8, 0);
    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    assert_int_equal(next_completion(&a, &b).error, 0);
    rdm_settle(&a, &b);
}

static void close_sides(void)
{

    ofp_endpoint_free(a.endpoint);
    assert_int_equal(ofp_av_close(a.av), 0);
    assert_int_equal(ofp_cq_close(a.cq), 0);
    assert_int_equal(ofp_domain_close(a.domain), 0);
    rdmfake_hold_packets(false);
    assert_int_equal(ofp_region_close(b.domain, region.id), 0);
    side_close(&b);
}

/* Everything that was posted is complete, and none of it has arrived. */
static void expect_unsent(uint64_t count)
{
    char address[OFP_ADDRESS_MAX], expected[OFP_ADDRESS_MAX];
    size_t length = sizeof(address), expected_length = sizeof(expected);
    struct ofp_unsent unsent;

    assert_int_equal(ofp_endpoint_linger(a.endpoint, 1), 0);
    assert_int_equal(ofp_endpoint_drain(a.endpoint), count != 0);
    assert_int_equal(ofp_endpoint_retire(a.endpoint, 0), 0);
    assert_int_equal(ofp_endpoint_unsent(a.endpoint, &unsent), 0);
    assert_int_equal(unsent.count, count);
    assert_int_equal(unsent.peers, count != 0);
    if (!count)
        return;
    assert_int_equal(ofp_endpoint_unsent_peer(a.endpoint, 0, address, &length), 0);
    assert_int_equal(ofp_endpoint_address(b.endpoint, expected, &expected_length), 0);
    assert_int_equal(length, expected_length);
    assert_memory_equal(address, expected, length);
}

static void send_few(uint64_t length)
{
    for (int i = 0; i < FEW; i++) {
        struct ofp_operation op = tagged(OFP_TSEND, a.peer, 2, memory, length, 0);

        assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
        assert_int_equal(next_completion(&a, &b).error, 0);
    }
}

/* With the one that the channel took within the call, and with those that it gives back later. */
static void test_messages(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        meet_sides(RDMFAKE_PACKETS);
        rdmfake_hold_packets(true);
        send_few(i ? LENGTH : 8);
        rdm_settle(&a, &b);
        expect_unsent(FEW);
        close_sides();
    }
}

static void test_data_of_a_write(void **state)
{
    struct ofp_operation op;

    (void)state;
    meet_sides(RDMFAKE_PUTS);
    op = tagged(OFP_WRITE, a.peer, 0, memory, LENGTH, 0);
    op.flags = OFP_REMOTE_CQ_DATA;
    op.remote_key = region.key;
    op.remote_offset = region.remote_base;
    rdmfake_hold_packets(true);
    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    assert_int_equal(next_completion(&a, &b).error, 0);
    expect_unsent(1);
    close_sides();
}

/* Packets that only answer, or give credit back, carry no operation of a program. */
static void test_other_packets_are_not_counted(void **state)
{
    struct ofp_unsent unsent;
    struct ofp_operation op;

    (void)state;
    meet_sides(RDMFAKE_PACKETS);
    op = tagged(OFP_TSEND, b.peer, 3, memory, LENGTH, 0);
    op.flags = OFP_MATCH_COMPLETE;
    assert_int_equal(ofp_post(b.endpoint, &op, 1), 1);
    rdm_settle(&a, &b);
    rdmfake_hold_packets(true);
    op = tagged(OFP_TRECV, OFP_PEER_ANY, 3, room, LENGTH, 0);
    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    ofp_domain_progress(a.domain);
    assert_int_equal(ofp_endpoint_drain(a.endpoint), 1);
    assert_int_equal(ofp_endpoint_retire(a.endpoint, 0), 0);
    assert_int_equal(ofp_endpoint_unsent(a.endpoint, &unsent), 0);
    assert_int_equal(unsent.count, 0);
    close_sides();
}

static void test_what_has_left_is_not_told(void **state)
{
    (void)state;
    meet_sides(RDMFAKE_PACKETS);
    rdmfake_hold_packets(true);
    send_few(8);
    rdm_settle(&a, &b);
    rdmfake_hold_packets(false);
    expect_unsent(0);
    close_sides();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_data_of_a_write),
        cmocka_unit_test(test_other_packets_are_not_counted),
        cmocka_unit_test(test_what_has_left_is_not_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
