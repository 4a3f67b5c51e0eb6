/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of operations: a whole row for every code, and rows that agree with themselves. */
#include "core_fixture.h"

#define RIGHTS (OFP_ACCESS_SEND | OFP_ACCESS_RECV | OFP_ACCESS_READ | OFP_ACCESS_WRITE)

static bool is_one_bit(uint64_t bits) { return bits && !(bits & (bits - 1)); }

static void test_every_code_has_its_row(void **state)
{
    (void)state;
    assert_int_equal(OFP_OPERATION_COUNT, OFP_GATHER + 1);
    for (uint32_t code = 1; code < OFP_OPERATION_COUNT; code++) {
        const struct ofp_operation_row *row = ofp_operation_row(code);

        assert_int_equal(row->code, code);
        if (code >= OFP_BARRIER) {
            struct ofp_operation_row group = {.code = (uint16_t)code,
                                              .traits = OFP_OF_GROUP,
                                              .flags = OFP_COMPLETION | OFP_MORE,
                                              .completed = OFP_COMPLETED_COLLECTIVE};

            assert_memory_equal(row, &group, sizeof(group));
            continue;
        }
        /* What an application may not post has no capability, and its completion counts nowhere. */
        assert_int_equal(row->channel == OFP_CHANNEL_INTERNAL, row->capability == 0);
        assert_int_equal(row->channel == OFP_CHANNEL_INTERNAL, row->completed == 0);
        assert_true(is_one_bit(row->capability) || !row->capability);
        assert_true(is_one_bit(row->local_access & RIGHTS));
        assert_int_equal(row->local_access & ~RIGHTS, 0);
        assert_int_equal(row->flags & ~(uint32_t)OFP_OPERATION_FLAGS, 0);
        assert_int_equal(row->flags & (OFP_COMPLETION | OFP_MORE), OFP_COMPLETION | OFP_MORE);
    }
}

static void test_rows_agree_with_themselves(void **state)
{
    (void)state;
    for (uint32_t code = 1; code < OFP_BARRIER; code++) {
        const struct ofp_operation_row *row = ofp_operation_row(code);
        bool remote = row->traits & OFP_REMOTE, receives = row->traits & OFP_RECEIVES;
        uint64_t reads = OFP_COMPLETED_READ | OFP_COMPLETED_REMOTE_READ;

        assert_false(remote && receives);
        assert_int_equal(remote, row->remote_access != 0);
        assert_int_equal(remote, row->event != 0);
        if (row->capability)
            assert_int_equal(receives, row->completed & OFP_COMPLETED_RECV ? 1 : 0);
        assert_int_equal(receives, row->flags & OFP_MULTI_RECV ? 1 : 0);
        assert_int_equal(row->traits & OFP_READS ? reads : 0, (row->completed | row->event) & reads);
        if (row->traits & OFP_READS)
            assert_int_equal(row->flags & OFP_INJECT, 0);
        if (row->traits & (OFP_ATOMIC_KIND | OFP_READS | OFP_COMPARES))
            assert_true(remote);
        if (!remote && row->capability)
            assert_int_equal(row->completed & OFP_COMPLETED_TAGGED ? OFP_CHANNEL_TAGGED : OFP_CHANNEL_MESSAGE,
                             row->channel);
    }
}

static void test_what_is_no_operation_has_an_empty_row(void **state)
{
    static const uint32_t codes[] = {0, OFP_OPERATION_COUNT, 255, 256, UINT32_MAX};
    static const struct ofp_operation_row empty;

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        assert_memory_equal(ofp_operation_row(codes[i]), &empty, sizeof(empty));
        assert_false(ofp_operation_is(codes[i], UINT32_MAX));
        assert_int_equal(ofp_operation_remote_access(codes[i], OFP_ATOMIC_SUM), 0);
    }
}

static void test_an_atomic_that_only_reads_needs_no_right_to_write(void **state)
{
    (void)state;
    assert_int_equal(ofp_operation_remote_access(OFP_FETCH_ATOMIC, OFP_ATOMIC_READ), OFP_ACCESS_REMOTE_READ);
    assert_int_equal(ofp_operation_remote_access(OFP_FETCH_ATOMIC, OFP_ATOMIC_SUM), OFP_REMOTE_BOTH);
    assert_int_equal(ofp_operation_remote_access(OFP_READ, 0), OFP_ACCESS_REMOTE_READ);
    /* There is no such operation; a peer that sends it gains nothing by it. */
    assert_int_equal(ofp_operation_remote_access(OFP_ATOMIC, OFP_ATOMIC_READ), OFP_ACCESS_REMOTE_WRITE);
}

/* By every way in. */
static void test_unknown_codes_and_flags_are_refused(void **state)
{
    static const uint16_t codes[] = {0, OFP_INTERNAL_SEND, OFP_INTERNAL_RECV, OFP_OPERATION_COUNT, 0x100, UINT16_MAX};
    struct side side;
    struct ofp_operation op;

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&side, &side);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        op = tagged(codes[i], side.peer, 1, "x", 1, 0);
        assert_int_equal(ofp_post(side.endpoint, &op, 1), -EINVAL);
        assert_int_equal(ofp_request_start(side.endpoint, &op, 0, 0), -EINVAL);
        assert_int_equal(ofp_prepare(side.endpoint, &op), -EINVAL);
    }
    for (uint16_t code = 1; code < OFP_OPERATION_COUNT; code++) {
        for (uint64_t flag = 1; flag; flag <<= 1) {
            op = tagged(code, side.peer, 1, "x", 1, 0);
            op.flags = flag;
            if (!(ofp_operation_row(code)->flags & flag))
                assert_int_equal(ofp_post(side.endpoint, &op, 1), -EINVAL);
        }
    }
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_has_its_row),
        cmocka_unit_test(test_rows_agree_with_themselves),
        cmocka_unit_test(test_what_is_no_operation_has_an_empty_row),
        cmocka_unit_test(test_an_atomic_that_only_reads_needs_no_right_to_write),
        cmocka_unit_test(test_unknown_codes_and_flags_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
