/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "parts.h"

enum { REGIONS = 300 };

static struct ofpi_regions regions;

static int open_regions(void **state)
{
    (void)state;
    ofpi_regions_init(&regions);
    return 0;
}

static int close_regions(void **state)
{
    (void)state;
    ofpi_regions_fini(&regions);
    return 0;
}

static void test_ids_are_small_and_never_zero(void **state)
{
    (void)state;
    assert_null(ofpi_regions_find(&regions, 0));
    assert_null(ofpi_regions_find(&regions, 1));
    for (uint32_t i = 1; i <= REGIONS; i++) {
        struct ofpi_region *region = ofpi_regions_add(&regions, OFP_ACCESS_SEND);

        assert_non_null(region);
        assert_int_equal(region->base.id, i);
        assert_int_equal(region->base.access, OFP_ACCESS_SEND);
        assert_true(region->open);
    }
    assert_int_equal(regions.live, REGIONS);
    assert_null(ofpi_regions_find(&regions, 0));
    assert_null(ofpi_regions_find(&regions, UINT32_MAX));
    assert_int_equal(ofpi_regions_find(&regions, 17)->base.id, 17);
}

static void test_removed_ids_are_empty_and_reused(void **state)
{
    struct ofpi_region *all[REGIONS];

    (void)state;
    for (int i = 0; i < REGIONS; i++)
        all[i] = ofpi_regions_add(&regions, 0);
    ofpi_regions_remove(&regions, all[200]);
    ofpi_regions_remove(&regions, all[7]);
    assert_null(ofpi_regions_find(&regions, 8));
    assert_null(ofpi_regions_find(&regions, 201));
    assert_int_equal(regions.live, REGIONS - 2);
    assert_int_equal(ofpi_regions_add(&regions, 0)->base.id, 8);
    assert_int_equal(ofpi_regions_add(&regions, 0)->base.id, 201);
    assert_int_equal(ofpi_regions_add(&regions, 0)->base.id, REGIONS + 1);
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static void test_keys_are_for_remote_access_only_and_differ(void **state)
{
    uint64_t keys[REGIONS], ones = 0, zeros = 0;

    (void)state;
    assert_int_equal(ofpi_regions_add(&regions, OFP_ACCESS_SEND | OFP_ACCESS_WRITE)->base.key, 0);
    for (int i = 0; i < REGIONS; i++) {
        keys[i] = ofpi_regions_add(&regions, i % 2 ? OFP_ACCESS_REMOTE_READ : OFP_ACCESS_REMOTE_WRITE)->base.key;
        assert_int_not_equal(keys[i], 0);
        ones |= keys[i];
        zeros |= ~keys[i];
    }
    /* All 64 bits vary: by chance this fails once in 2^290 runs. */
    assert_true(ones == UINT64_MAX && zeros == UINT64_MAX);
    qsort(keys, REGIONS, sizeof(keys[0]), compare);
    for (int i = 1; i < REGIONS; i++)
        assert_int_not_equal(keys[i - 1], keys[i]);
}

static void test_uses_are_counted_and_none_is_allowed(void **state)
{
    struct ofpi_region *region = ofpi_regions_add(&regions, 0);

    (void)state;
    ofpi_region_hold(&region->base);
    ofpi_region_hold(&region->base);
    ofpi_region_release(&region->base);
    assert_int_equal(region->uses, 1);
    ofpi_region_hold(NULL);
    ofpi_region_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ids_are_small_and_never_zero, open_regions, close_regions),
        cmocka_unit_test_setup_teardown(test_removed_ids_are_empty_and_reused, open_regions, close_regions),
        cmocka_unit_test_setup_teardown(test_keys_are_for_remote_access_only_and_differ, open_regions, close_regions),
        cmocka_unit_test_setup_teardown(test_uses_are_counted_and_none_is_allowed, open_regions, close_regions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
