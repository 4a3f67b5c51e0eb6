/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "object/region.h"

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
    ofpi_regions_close(&regions);
    return 0;
}

static struct ofpi_region *add(uint32_t access)
{
    int error = 1;
    struct ofpi_region *region = ofpi_regions_add(&regions, access, &error);

    assert_non_null(region);
    assert_int_equal(error, 0);
    return region;
}

static void test_ids_name_their_regions_and_are_never_zero(void **state)
{
    struct ofpi_region *all[REGIONS];

    (void)state;
    assert_null(ofpi_regions_find(&regions, 0));
    assert_null(ofpi_regions_find(&regions, 1));
    for (int i = 0; i < REGIONS; i++) {
        all[i] = add(OFP_ACCESS_SEND);
        assert_int_not_equal(ofpi_index_of_id(all[i]->base.id), 0);
        assert_int_equal(all[i]->base.access, OFP_ACCESS_SEND);
        assert_true(all[i]->open);
    }
    assert_int_equal(regions.ids.live, REGIONS);
    assert_null(ofpi_regions_find(&regions, 0));
    assert_null(ofpi_regions_find(&regions, UINT32_MAX));
    for (int i = 0; i < REGIONS; i++)
        assert_ptr_equal(ofpi_regions_find(&regions, all[i]->base.id), all[i]);
}

static void test_the_id_of_a_removed_region_stays_empty(void **state)
{
    uint32_t stale[REGIONS];

    (void)state;
    for (int i = 0; i < REGIONS; i++) {
        struct ofpi_region *region = add(0);

        stale[i] = region->base.id;
        ofpi_regions_remove(&regions, region);
    }
    assert_int_equal(regions.ids.live, 0);
    for (int i = 0; i < REGIONS; i++)
        add(0);
    for (int i = 0; i < REGIONS; i++)
        assert_null(ofpi_regions_find(&regions, stale[i]));
}

/* An id of one domain is likely to be none in another: they begin at generations of their own. */
static void test_domains_begin_at_different_generations(void **state)
{
    enum { DOMAINS = 64 };
    uint32_t first = add(0)->base.id;
    int differ = 0;

    (void)state;
    for (int i = 0; i < DOMAINS; i++) {
        ofpi_regions_close(&regions);
        ofpi_regions_init(&regions);
        differ += add(0)->base.id != first;
    }
    /* By chance two of them are alike, but never this many: one in 10^60. */
    assert_true(differ > DOMAINS / 2);
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
    assert_int_equal(add(OFP_ACCESS_SEND | OFP_ACCESS_WRITE)->base.device[0].key, 0);
    for (int i = 0; i < REGIONS; i++) {
        keys[i] = add(i % 2 ? OFP_ACCESS_REMOTE_READ : OFP_ACCESS_REMOTE_WRITE)->base.device[0].key;
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
    struct ofpi_region *region = add(0);

    (void)state;
    ofpi_region_retain(&region->base);
    ofpi_region_retain(&region->base);
    ofpi_region_release(&region->base);
    assert_int_equal(region->uses, 1);
    ofpi_region_retain(NULL);
    ofpi_region_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ids_name_their_regions_and_are_never_zero, open_regions, close_regions),
        cmocka_unit_test_setup_teardown(test_the_id_of_a_removed_region_stays_empty, open_regions, close_regions),
        cmocka_unit_test_setup_teardown(test_domains_begin_at_different_generations, open_regions, close_regions),
        cmocka_unit_test_setup_teardown(test_keys_are_for_remote_access_only_and_differ, open_regions, close_regions),
        cmocka_unit_test_setup_teardown(test_uses_are_counted_and_none_is_allowed, open_regions, close_regions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
