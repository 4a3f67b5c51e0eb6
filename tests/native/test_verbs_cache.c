/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache on a simulated device, which stores the owner of each page when it is registered. A model with the current
 * owners shows whether an operation would use stale memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/cache.h"
#include "ofipy/provider.h"

enum { MOST = 8, PAGES = 64, PAGE = 4096, OWNERS = 12, STEPS = 20000, IN_USE = 16, LIMIT = 40 * PAGE };

/* Of no interest but as a pointer. */
struct ibv_pd {
    char unused;
};

struct verbs_calls verbs_calls;

/* The owner of each page of a simulated address space, as a number from 1 on; 0: none. */
static uint32_t now[PAGES + 1];
static char *const space = (char *)(uintptr_t)0x10000000;

struct registered {
    struct ibv_mr mr;
    uint32_t first[PAGES]; /* the owner of each of its pages at registration */
};

static struct ibv_pd pd;
static struct ofp_domain domain;
static struct verbs_cache cache;
static uint64_t locked; /* bytes of all that is registered */
static uint64_t live;

static size_t page_of(const void *address) { return (size_t)((const char *)address - space) / PAGE; }

static struct ibv_mr *reg_mr(struct ibv_pd *given, void *address, size_t length, int access)
{
    struct registered *made;

    assert_ptr_equal(given, &pd);
    assert_true(access & IBV_ACCESS_LOCAL_WRITE || !(access & ~IBV_ACCESS_LOCAL_WRITE));
    if (locked + length > LIMIT) {
        errno = ENOMEM;
        return NULL;
    }
    made = calloc(1, sizeof(*made));
    made->mr.addr = address;
    made->mr.length = length;
    for (size_t page = page_of(address), i = 0; page <= page_of((char *)address + length - 1); page++, i++)
        made->first[i] = now[page];
    locked += length;
    live++;
    return &made->mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
    locked -= mr->length;
    live--;
    free(mr);
    return 0;
}

static int open_with(uint32_t most, uint64_t most_bytes)
{
    memset(now, 0, sizeof(now));
    memset(&domain, 0, sizeof(domain));
    domain.engine = &domain;
    verbs_calls.dereg_mr = dereg_mr;
    verbs_calls.reg_mr = reg_mr;
    verbs_cache_open(&cache, &domain, &pd, most, most_bytes);
    return 0;
}

static int open_cache(void **state)
{
    (void)state;
    return open_with(MOST, 32 * PAGE);
}

static int close_cache(void **state)
{
    (void)state;
    verbs_cache_clear(&cache);
    assert_int_equal(live, 0);
    assert_int_equal(locked, 0);
    return 0;
}

static struct ofp_region region_at(size_t page, size_t pages)
{
    return (struct ofp_region){.base = space + page * PAGE, .length = pages * PAGE, .owned = true};
}

static struct verbs_registration *take(struct ofp_region *region, uint64_t offset, uint64_t length)
{
    return verbs_cache_acquire(&cache, region, region->base + offset, length, 0);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void test_memory_with_an_owner_is_registered_once(void **state)
{
    struct ofp_region region = region_at(0, 2);

    (void)state;
    for (int i = 0; i < 10; i++)
        verbs_cache_release(&cache, take(&region, 0, 2 * PAGE));
    assert_int_equal(domain.registrations, 1);
    assert_int_equal(domain.registrations_reused, 9);
    assert_int_equal(live, 1);
    verbs_cache_remove_region(&cache, &region);
    assert_int_equal(live, 0);
    assert_int_equal(domain.registrations_dropped, 0);
}

static void test_other_memory_is_registered_for_each_operation(void **state)
{
    struct ofp_region explicit = region_at(0, 2);

    (void)state;
    explicit.owned = false;
    for (int i = 0; i < 3; i++) {
        verbs_cache_release(&cache, verbs_cache_acquire(&cache, NULL, space, PAGE, 0));
        verbs_cache_release(&cache, take(&explicit, 0, PAGE));
        assert_int_equal(live, 0);
    }
    assert_int_equal(domain.registrations, 6);
    assert_int_equal(domain.registrations_reused, 0);
}

static void test_a_part_of_a_small_owner_makes_all_of_it_known(void **state)
{
    struct ofp_region region = region_at(0, 4);

    (void)state;
    verbs_cache_release(&cache, take(&region, PAGE, PAGE));
    verbs_cache_release(&cache, take(&region, 0, 4 * PAGE));
    assert_int_equal(domain.registrations, 1);
    verbs_cache_remove_region(&cache, &region);
}

static void test_of_a_large_owner_the_parts_are_registered(void **state)
{
    struct ofp_region region = region_at(0, 30);

    (void)state;
    verbs_cache_release(&cache, take(&region, 0, PAGE));
    verbs_cache_release(&cache, take(&region, 8 * PAGE, PAGE));
    assert_int_equal(locked, 2 * PAGE);
    verbs_cache_release(&cache, take(&region, 8 * PAGE + 1, PAGE - 1));
    assert_int_equal(domain.registrations, 2);
    /* Beyond one of them, below it, and from one into the next. */
    verbs_cache_release(&cache, take(&region, 8 * PAGE, PAGE + 1));
    verbs_cache_release(&cache, take(&region, 8 * PAGE - 1, PAGE));
    assert_int_equal(domain.registrations, 4);
    verbs_cache_remove_region(&cache, &region);
}

static void test_other_rights_are_another_registration(void **state)
{
    struct ofp_region region = region_at(0, 1);

    (void)state;
    verbs_cache_release(&cache, take(&region, 0, PAGE));
    verbs_cache_release(&cache, verbs_cache_acquire(&cache, &region, region.base, PAGE, IBV_ACCESS_LOCAL_WRITE));
    assert_int_equal(domain.registrations, 1);
    verbs_cache_release(&cache, verbs_cache_acquire(&cache, &region, region.base, PAGE,
                                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
    assert_int_equal(domain.registrations, 2);
    verbs_cache_remove_region(&cache, &region);
}

static void test_those_longest_idle_make_room(void **state)
{
    struct ofp_region regions[MOST + 1];
    struct verbs_registration *first;

    (void)state;
    for (size_t i = 0; i <= MOST; i++)
        regions[i] = region_at(i, 1);
    first = take(&regions[0], 0, PAGE);
    for (size_t i = 1; i < MOST; i++)
        verbs_cache_release(&cache, take(&regions[i], 0, PAGE));
    verbs_cache_release(&cache, take(&regions[1], 0, PAGE));
    /* The first is in use, the second was used last: the third goes. */
    verbs_cache_release(&cache, take(&regions[MOST], 0, PAGE));
    assert_int_equal(domain.registrations_dropped, 1);
    assert_int_equal(regions[2].device[0].provider_data[0], 0);
    assert_int_not_equal(regions[1].device[0].provider_data[0], 0);
    verbs_cache_release(&cache, first);
    assert_int_equal(cache.count, MOST);
    for (size_t i = 0; i <= MOST; i++)
        verbs_cache_remove_region(&cache, &regions[i]);
}

static void test_what_is_in_use_may_be_more_than_is_kept(void **state)
{
    struct ofp_region regions[MOST + 4];
    struct verbs_registration *used[MOST + 4];

    (void)state;
    for (size_t i = 0; i < MOST + 4; i++) {
        regions[i] = region_at(i, 1);
        used[i] = take(&regions[i], 0, PAGE);
    }
    assert_int_equal(live, MOST + 4);
    for (size_t i = 0; i < MOST + 4; i++)
        verbs_cache_release(&cache, used[i]);
    assert_int_equal(live, MOST);
    for (size_t i = 0; i < MOST + 4; i++)
        verbs_cache_remove_region(&cache, &regions[i]);
}

static void test_idle_ones_give_way_to_the_limit_on_locked_memory(void **state)
{
    struct ofp_region small = region_at(0, 4), large = region_at(4, 30);
    struct verbs_registration *used;

    (void)state;
    verbs_cache_release(&cache, take(&small, 0, PAGE));
    used = verbs_cache_acquire(&cache, NULL, space + 20 * PAGE, 38 * PAGE, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(used);
    assert_int_equal(domain.registrations_dropped, 1);
    assert_null(take(&large, 0, 3 * PAGE));
    assert_int_equal(errno, ENOMEM);
    verbs_cache_release(&cache, used);
    used = take(&large, 0, 3 * PAGE);
    assert_non_null(used);
    verbs_cache_release(&cache, used);
    verbs_cache_remove_region(&cache, &small);
    verbs_cache_remove_region(&cache, &large);
}

static void test_what_is_in_use_outlives_its_owner(void **state)
{
    struct ofp_region region = region_at(0, 1), next = region_at(0, 1);
    struct verbs_registration *used = take(&region, 0, PAGE), *other;

    (void)state;
    verbs_cache_remove_region(&cache, &region);
    assert_int_equal(live, 1);
    assert_int_equal(cache.count, 0);
    other = take(&next, 0, PAGE);
    assert_ptr_not_equal(other, used);
    verbs_cache_release(&cache, used);
    assert_int_equal(live, 1);
    verbs_cache_release(&cache, other);
    verbs_cache_remove_region(&cache, &next);
}

static void test_rights_from_afar_are_for_what_was_named(void **state)
{
    struct ofp_region region = region_at(0, 4);
    struct verbs_registration *used;

    (void)state;
    verbs_cache_release(&cache, take(&region, 0, 4 * PAGE));
    used = verbs_cache_acquire(&cache, &region, region.base + PAGE, PAGE, IBV_ACCESS_REMOTE_READ);
    assert_ptr_equal(used->mr->addr, region.base + PAGE);
    assert_int_equal(used->mr->length, PAGE);
    verbs_cache_release(&cache, used);
    /* The same again, a part of it, and what it is a part of. */
    assert_ptr_equal(verbs_cache_acquire(&cache, &region, region.base + PAGE, PAGE, IBV_ACCESS_REMOTE_READ), used);
    verbs_cache_release(&cache, used);
    verbs_cache_release(&cache, verbs_cache_acquire(&cache, &region, region.base + PAGE, 100, IBV_ACCESS_REMOTE_READ));
    verbs_cache_release(&cache, verbs_cache_acquire(&cache, &region, region.base, 4 * PAGE, IBV_ACCESS_REMOTE_READ));
    assert_int_equal(domain.registrations, 4);
    verbs_cache_remove_region(&cache, &region);
}

static void test_nothing_is_kept_where_that_is_asked_for(void **state)
{
    struct ofp_region region = region_at(0, 1);

    (void)state;
    open_with(0, 32 * PAGE);
    verbs_cache_release(&cache, take(&region, 0, PAGE));
    assert_int_equal(live, 0);
    open_with(MOST, 0);
    verbs_cache_release(&cache, take(&region, 0, PAGE));
    assert_int_equal(live, 0);
}

/* ------------------------------------------------------------------------------------------------------------ model */

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

struct owner {
    struct ofp_region region;
    uint32_t name; /* never given twice; 0: there is none */
    uint32_t uses;
};

struct use {
    struct verbs_registration *registration;
    struct owner *owner;
    const char *base;
    uint64_t length;
};

/* The registration covers the operation's bytes, and every page still has the owner that was registered. */
static void check_sees(const struct use *use)
{
    const struct registered *seen = OFP_CONTAINER_OF(use->registration->mr, struct registered, mr);
    const char *first = seen->mr.addr;

    assert_true(use->base >= first && use->base + use->length <= first + seen->mr.length);
    for (size_t page = page_of(use->base); page <= page_of(use->base + use->length - 1); page++) {
        assert_int_equal(seen->first[page - page_of(first)], use->owner->name);
        assert_int_equal(now[page], use->owner->name);
    }
}

static void leave(struct owner *owner)
{
    verbs_cache_remove_region(&cache, &owner->region);
    for (size_t page = 0; page < owner->region.length / PAGE; page++)
        now[page_of(owner->region.base) + page] = 0;
    owner->name = 0;
}

static void come(struct owner *owner)
{
    static uint32_t names;
    uint32_t pages = 1 + draw(10), page = draw(PAGES - pages);

    for (uint32_t i = 0; i < pages; i++)
        if (now[page + i])
            return;
    owner->region = region_at(page, pages);
    owner->name = ++names;
    for (uint32_t i = 0; i < pages; i++)
        now[page + i] = owner->name;
}

static void test_operations_see_the_memory_of_their_owner(void **state)
{
    static struct owner owners[OWNERS];
    struct use uses[IN_USE] = {0};
    uint64_t refused = 0;

    (void)state;
    seed = (uint64_t)(uintptr_t)&seed;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int step = 0; step < STEPS; step++) {
        struct owner *owner = &owners[draw(OWNERS)];
        struct use *use = &uses[draw(IN_USE)];

        if (!owner->name) {
            come(owner);
        } else if (draw(8) == 0 && !owner->uses) {
            leave(owner);
        } else if (use->registration) {
            check_sees(use);
            verbs_cache_release(&cache, use->registration);
            use->owner->uses--;
            use->registration = NULL;
        } else {
            uint64_t offset = draw((uint32_t)owner->region.length),
                     length = 1 + draw((uint32_t)(owner->region.length - offset));
            int access = draw(2) ? IBV_ACCESS_LOCAL_WRITE : 0;

            *use = (struct use){.owner = owner, .base = owner->region.base + offset, .length = length};
            use->registration =
                verbs_cache_acquire(&cache, &owner->region, owner->region.base + offset, length, access);
            refused += !use->registration;
            if (use->registration) {
                owner->uses++;
                check_sees(use);
            }
        }
        assert_true(locked <= LIMIT);
        assert_true(cache.count <= MOST || ofp_list_empty(&cache.idle));
        assert_true(cache.bytes <= cache.most_bytes || ofp_list_empty(&cache.idle));
    }
    for (size_t i = 0; i < IN_USE; i++)
        if (uses[i].registration)
            verbs_cache_release(&cache, uses[i].registration);
    for (size_t i = 0; i < OWNERS; i++)
        if (owners[i].name)
            leave(&owners[i]);
    assert_true(domain.registrations_reused > STEPS / 20);
    assert_true(domain.registrations_dropped > 0);
    assert_true(refused < STEPS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory_with_an_owner_is_registered_once, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_other_memory_is_registered_for_each_operation, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_a_part_of_a_small_owner_makes_all_of_it_known, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_of_a_large_owner_the_parts_are_registered, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_other_rights_are_another_registration, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_those_longest_idle_make_room, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_what_is_in_use_may_be_more_than_is_kept, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_idle_ones_give_way_to_the_limit_on_locked_memory, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_what_is_in_use_outlives_its_owner, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_rights_from_afar_are_for_what_was_named, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_nothing_is_kept_where_that_is_asked_for, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(test_operations_see_the_memory_of_their_owner, open_cache, close_cache),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
