/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side of RMA and atomics: keys, bounds, rights, revocation, events; and requests as they come back. */
#include "core_fixture.h"

#define BOTH (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE)

static struct side a, b;
static uint64_t memory[512];

static int setup(void **state)
{
    (void)state;
    memset(memory, 0, sizeof(memory));
    side_open(&a, false, OFP_PROGRESS_MANUAL, 16);
    side_open(&b, false, OFP_PROGRESS_MANUAL, 16);
    sides_meet(&a, &b);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    side_close(&a);
    side_close(&b);
    return 0;
}

static struct ofp_region_handle lend(void *base, uint64_t length, uint32_t access)
{
    struct ofp_region_attr attr = {.base = base, .length = length, .access = access};
    struct ofp_region_handle region;

    assert_int_equal(ofp_region_register(b.domain, &attr, &region), 0);
    return region;
}

static void close_region(struct ofp_region_handle region)
{
    assert_int_equal(ofp_region_close(b.domain, region.id), 0);
}

static int reach(uint64_t key, uint64_t offset, uint64_t length, uint32_t access, struct ofp_remote_access *result)
{
    return ofp_remote_access(b.endpoint, key, offset, length, access, result);
}

static void test_bounds(void **state)
{
    struct ofp_region_handle region = lend(memory, 100, BOTH);
    struct ofp_remote_access access;
    static const struct {
        uint64_t offset, length;
        int result;
    } cases[] = {
        {0, 100, 0},
        {0, 0, 0},
        {100, 0, 0},
        {99, 1, 0},
        {0, 101, -ERANGE},
        {100, 1, -ERANGE},
        {101, 0, -ERANGE},
        {UINT64_MAX, 1, -ERANGE},
        {UINT64_MAX, 2, -ERANGE},
        {1, UINT64_MAX, -ERANGE},
        {0, UINT64_MAX, -ERANGE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int result = reach(region.key, cases[i].offset, cases[i].length, OFP_ACCESS_REMOTE_READ, &access);

        assert_int_equal(result, cases[i].result);
        if (result)
            continue;
        assert_ptr_equal(access.memory, (char *)memory + cases[i].offset);
        assert_int_equal(access.length, cases[i].length);
        ofpi_core.remote_release(&access);
        assert_null(access.memory);
    }
    close_region(region);
}

static void test_rights(void **state)
{
    static const uint32_t rights[] = {OFP_ACCESS_REMOTE_READ, OFP_ACCESS_REMOTE_WRITE, BOTH};
    struct ofp_remote_access access;

    (void)state;
    for (int have = 0; have < 3; have++) {
        struct ofp_region_handle region = lend(memory, 8, rights[have]);

        for (int want = 0; want < 3; want++) {
            int result = reach(region.key, 0, 8, rights[want], &access);

            assert_int_equal(result, rights[want] & ~rights[have] ? -EACCES : 0);
            if (!result)
                ofpi_core.remote_release(&access);
        }
        close_region(region);
    }
}

static void test_keys(void **state)
{
    struct ofp_region_attr attr = {.base = memory, .length = 8, .access = BOTH, .has_key = 1, .key = 7};
    struct ofp_region_handle private = lend(memory, 8, OFP_ACCESS_SEND | OFP_ACCESS_RECV), first, second;
    struct ofp_remote_access access;

    (void)state;
    assert_int_equal(private.key, 0);
    assert_int_equal(reach(0, 0, 1, OFP_ACCESS_REMOTE_READ, &access), -OFP_ENOKEY);
    assert_int_equal(ofp_region_register(b.domain, &attr, &first), 0);
    assert_int_equal(first.key, 7);
    assert_int_equal(ofp_region_register(b.domain, &attr, &second), -OFP_ENOKEY);
    attr.key = 0;
    assert_int_equal(ofp_region_register(b.domain, &attr, &second), 0);
    assert_int_equal(reach(0, 0, 1, OFP_ACCESS_REMOTE_READ, &access), 0);
    assert_int_equal(access.region->id, second.id);
    ofpi_core.remote_release(&access);
    assert_int_equal(reach(8, 0, 1, OFP_ACCESS_REMOTE_READ, &access), -OFP_ENOKEY);
    close_region(first);
    assert_int_equal(reach(7, 0, 1, OFP_ACCESS_REMOTE_READ, &access), -OFP_ENOKEY);
    close_region(second);
    close_region(private);
}

static void test_many_keys(void **state)
{
    enum { COUNT = 200 };
    struct ofp_region_handle regions[COUNT];
    struct ofp_remote_access access;

    (void)state;
    for (int i = 0; i < COUNT; i++)
        regions[i] = lend(&memory[i], 8, BOTH);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(reach(regions[i].key, 0, 8, BOTH, &access), 0);
        assert_ptr_equal(access.memory, &memory[i]);
        ofpi_core.remote_release(&access);
    }
    for (int i = 0; i < COUNT; i += 2)
        close_region(regions[i]);
    for (int i = 0; i < COUNT; i++) {
        int result = reach(regions[i].key, 0, 8, BOTH, &access);

        assert_int_equal(result, i % 2 ? 0 : -OFP_ENOKEY);
        if (!result)
            ofpi_core.remote_release(&access);
    }
    for (int i = 1; i < COUNT; i += 2)
        close_region(regions[i]);
}

/* Who is inside when the region is closed finds no memory any more, and releasing is still right. */
static void test_revoke(void **state)
{
    struct ofp_region_handle region = lend(memory, 64, BOTH), other = lend(memory, 64, BOTH);
    struct ofp_remote_access inside[3], left, elsewhere;
    uint64_t one = 1;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(reach(region.key, 8 * (uint64_t)i, 8, BOTH, &inside[i]), 0);
    assert_int_equal(reach(region.key, 0, 8, BOTH, &left), 0);
    assert_int_equal(reach(other.key, 0, 8, BOTH, &elsewhere), 0);
    ofpi_core.remote_release(&left);
    close_region(region);
    for (int i = 0; i < 3; i++) {
        assert_null(inside[i].memory);
        assert_null(inside[i].region);
        assert_int_equal(ofpi_core.atomic_execute(&inside[i], OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, &one, NULL, NULL),
                         -ECANCELED);
        ofpi_core.remote_release(&inside[i]);
    }
    assert_ptr_equal(elsewhere.memory, memory);
    ofpi_core.remote_release(&elsewhere);
    close_region(other);
}

static void test_atomic_execute(void **state)
{
    struct ofp_region_handle region = lend(memory, 24, BOTH);
    struct ofp_remote_access access;
    uint64_t operand[3] = {1, 2, 3}, result[3];

    (void)state;
    memory[1] = 10;
    assert_int_equal(reach(region.key, 0, 24, BOTH, &access), 0);
    assert_int_equal(
        ofpi_core.atomic_execute(&access, OFP_FETCH_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, operand, NULL, result), 0);
    assert_int_equal(result[1], 10);
    assert_int_equal(memory[0], 1);
    assert_int_equal(memory[1], 12);
    assert_int_equal(memory[2], 3);
    assert_int_equal(ofpi_core.atomic_execute(&access, OFP_ATOMIC, OFP_ATOMIC_SUM, 99, operand, NULL, NULL),
                     -EOPNOTSUPP);
    assert_int_equal(ofpi_core.atomic_execute(&access, OFP_ATOMIC, 99, OFP_UINT64, operand, NULL, NULL), -EOPNOTSUPP);
    assert_int_equal(
        ofpi_core.atomic_execute(&access, OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_DOUBLE_COMPLEX, operand, NULL, NULL),
        -EINVAL);
    ofpi_core.remote_release(&access);
    close_region(region);
}

static struct ofp_operation remote(uint16_t op, struct ofp_region_handle region, const void *local, uint64_t length)
{
    struct ofp_operation record = tagged(op, a.peer, 0, local, length, 42);

    record.remote_key = region.key;
    record.remote_offset = region.remote_base;
    return record;
}

static void test_round_trip(void **state)
{
    struct ofp_region_handle region = lend(memory, sizeof(memory), BOTH);
    uint64_t source[4] = {1, 2, 3, 4}, back[4] = {0};
    struct ofp_operation op = remote(OFP_WRITE, region, source, sizeof(source));
    struct ofp_completion row;

    (void)state;
    op.flags = OFP_REMOTE_CQ_DATA;
    op.data = 99;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    row = next_completion(&b, &a);
    assert_int_equal(row.flags, OFP_COMPLETED_REMOTE_WRITE | OFP_COMPLETED_RMA | OFP_COMPLETED_REMOTE_CQ_DATA);
    assert_int_equal(row.data, 99);
    assert_int_equal(row.source, b.peer);
    row = next_completion(&a, &b);
    assert_int_equal(row.error, 0);
    assert_int_equal(row.context, 42);
    assert_memory_equal(memory, source, sizeof(source));
    op = remote(OFP_READ, region, back, sizeof(back));
    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    assert_int_equal(next_completion(&a, &b).flags, OFP_COMPLETED_READ | OFP_COMPLETED_RMA);
    assert_memory_equal(back, source, sizeof(source));
    close_region(region);
    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    row = next_completion(&a, &b);
    assert_int_equal(row.error, OFP_EREMOTE);
    assert_int_equal(row.provider_error, OFP_ENOKEY);
}

/* The codes are the core's, so a provider without texts of its own has these. */
static void test_refusals_have_texts(void **state)
{
    static const int codes[] = {OFP_ENOKEY, ERANGE, EACCES};
    static const char *const parts[] = {"has this key", "reach so far", "grant this"};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_non_null(strstr(ofp_provider_error_text(fake_provider(), codes[i]), parts[i]));
    assert_null(ofp_provider_error_text(fake_provider(), EIO));
}

static void test_records_that_are_refused(void **state)
{
    struct ofp_region_handle region = lend(memory, sizeof(memory), BOTH);
    struct ofp_remote_segment pieces[2] = {{0, 4, region.key}, {4, 12, region.key}};
    uint64_t value[2] = {0}, result[2];
    struct ofp_operation sum = remote(OFP_FETCH_ATOMIC, region, value, sizeof(value)), op;

    (void)state;
    sum.atomic_op = OFP_ATOMIC_SUM;
    sum.datatype = OFP_UINT64;
    sum.result_offset = (uint64_t)(uintptr_t)result;
    op = sum;
    op.datatype = 99;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -EOPNOTSUPP);
    op = sum;
    op.atomic_op = OFP_ATOMIC_CSWAP;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -EOPNOTSUPP);
    op = sum;
    op.length = 12;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -EINVAL);
    op = sum;
    op.remote_segments = (uint64_t)(uintptr_t)pieces;
    op.remote_segment_count = 2;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -EINVAL);
    op.op = OFP_WRITE;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    pieces[1].length = 13;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -EINVAL);
    op = sum;
    op.result_offset = 0;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -EFAULT);
    op = sum;
    op.flags = OFP_INJECT;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -EINVAL);
    assert_int_equal(next_completion(&a, &b).error, 0);
    close_region(region);
}

/* How a transfer between `local` and a region of b ends. */
static int remote_transfer(uint16_t code, struct ofp_region_handle region, const void *local, uint64_t length)
{
    struct ofp_operation op = remote(code, region, local, length);

    assert_int_equal(ofp_post(a.endpoint, &op, 1), 1);
    return next_completion(&a, &b).error;
}

static uint64_t value_of(struct ofp_counter *counter)
{
    uint64_t value = UINT64_MAX;

    assert_int_equal(ofp_counter_read(counter, &value), 0);
    return value;
}

/* Reads and writes of a, in two regions of b with counters of their own; then without. */
static void test_counters_of_regions(void **state)
{
    struct ofp_counter_attr counts = {0}, sums = {.events = OFP_COUNTER_BYTES};
    struct ofp_counter *reads, *writes, *foreign;
    struct ofp_region_handle region, other, plain;
    struct ofp_region_attr attr = {.base = memory, .length = 64, .access = BOTH};
    char out[24] = "counted", text[OFP_TEXT_MAX];

    (void)state;
    assert_int_equal(ofp_counter_open(b.domain, &counts, &reads), 0);
    assert_int_equal(ofp_counter_open(b.domain, &sums, &writes), 0);
    assert_int_equal(ofp_counter_open(a.domain, &counts, &foreign), 0);
    attr.remote_read = foreign;
    assert_int_equal(ofp_region_register(b.domain, &attr, &region), -EINVAL);
    assert_int_equal(ofp_counter_close(foreign), 0);
    attr.remote_read = reads;
    attr.remote_write = writes;
    assert_int_equal(ofp_region_register(b.domain, &attr, &region), 0);
    attr.base = NULL;
    attr.remote_read = NULL;
    assert_int_equal(ofp_region_allocate(b.domain, &attr, &other, text, sizeof(text)), 0);
    plain = lend(memory + 16, 64, BOTH);
    for (int i = 0; i < 3; i++) {
        remote_transfer(OFP_WRITE, region, out, 10);
        remote_transfer(OFP_READ, region, out, 24);
        remote_transfer(OFP_WRITE, other, out, 5);
        remote_transfer(OFP_READ, other, out, 24);
        remote_transfer(OFP_WRITE, plain, out, 24);
    }
    assert_int_equal(value_of(reads), 3);
    assert_int_equal(value_of(writes), 45);
    /* The right is there, the bounds are not. */
    assert_int_equal(remote_transfer(OFP_WRITE, region, memory, 65), OFP_EREMOTE);
    assert_int_equal(value_of(writes), 45);
    /* A counter that ends leaves its regions. */
    assert_int_equal(ofp_counter_close(writes), 0);
    assert_int_equal(remote_transfer(OFP_WRITE, region, out, 10), 0);
    assert_int_equal(remote_transfer(OFP_WRITE, other, out, 10), 0);
    assert_int_equal(remote_transfer(OFP_READ, region, out, 10), 0);
    assert_int_equal(value_of(reads), 4);
    close_region(region);
    close_region(other);
    close_region(plain);
    assert_int_equal(ofp_counter_close(reads), 0);
}

/* What two kinds do to one element would not be one step against each other. */
static void test_memory_of_devices_atomics(void **state)
{
    struct ofp_region_attr attr = {
        .base = memory, .length = 8, .access = BOTH | OFP_ACCESS_DEVICE_ATOMIC, .remote_read = NULL};
    struct ofpi_domain *domain = (struct ofpi_domain *)b.domain;
    struct ofp_region_handle region;
    struct ofp_remote_access access;
    uint64_t operand = 1, result, count;

    (void)state;
    assert_int_equal(ofp_region_register(b.domain, &attr, &region), -EOPNOTSUPP);
    assert_int_equal(
        ofp_atomic_query(b.domain, OFP_FETCH_ATOMIC | OFP_DEVICE_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, &count),
        -EOPNOTSUPP);
    domain->info.caps |= OFP_CAP_DEVICE_ATOMIC;
    assert_int_equal(ofp_region_register(b.domain, &attr, &region), 0);
    assert_int_not_equal(region.key, 0);
    assert_int_equal(reach(region.key, 0, 8, BOTH, &access), 0);
    assert_int_equal(
        ofpi_core.atomic_execute(&access, OFP_FETCH_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT64, &operand, NULL, &result),
        -EACCES);
    assert_int_equal(memory[0], 0);
    ofpi_core.remote_release(&access);
    close_region(region);
}

/* Of an endpoint that has the core's atomics, and no device. */
static void test_the_flag_of_devices_atomics(void **state)
{
    uint64_t operand = 1, back = 0;
    struct ofp_region_handle region = lend(memory, 8, BOTH);
    struct ofp_operation op = {.op = OFP_FETCH_ATOMIC,
                               .atomic_op = OFP_ATOMIC_SUM,
                               .datatype = OFP_UINT64,
                               .flags = OFP_DEVICE_ATOMIC,
                               .peer = a.peer,
                               .offset = (uintptr_t)&operand,
                               .length = 8,
                               .result_offset = (uintptr_t)&back,
                               .remote_key = region.key};

    (void)state;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -EOPNOTSUPP);
    op.op = OFP_SEND;
    assert_int_equal(ofp_post(a.endpoint, &op, 1), -EINVAL);
    close_region(region);
}

/* Nothing is kept by a provider that did not ask for it. */
static void test_memory_of_an_owner(void **state)
{
    uint32_t id = 0;

    (void)state;
    assert_true(ofp_domain_keeps_above(b.domain) == UINT64_MAX);
    assert_int_equal(ofp_region_own(b.domain, memory, sizeof(memory), &id), -EOPNOTSUPP);
    assert_int_equal(id, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory_of_devices_atomics, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_flag_of_devices_atomics, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_of_an_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rights, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_revoke, setup, teardown),
        cmocka_unit_test_setup_teardown(test_atomic_execute, setup, teardown),
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test(test_refusals_have_texts),
        cmocka_unit_test_setup_teardown(test_records_that_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counters_of_regions, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
