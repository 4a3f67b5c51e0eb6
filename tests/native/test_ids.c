/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/ids.h"

enum { FIRST_SLOTS = 16 };

static struct ofpi_ids ids;
static int object;

static uint32_t add(void)
{
    uint32_t id = 0;

    assert_int_equal(ofpi_ids_add(&ids, &object, &id), 0);
    assert_ptr_equal(ofpi_ids_find(&ids, id), &object);
    return id;
}

static int open_ids(void **state)
{
    (void)state;
    ofpi_ids_init(&ids, 0, 0);
    return 0;
}

static int close_ids(void **state)
{
    (void)state;
    ofpi_ids_close(&ids);
    return 0;
}

static void test_fresh_ids_count_from_zero(void **state)
{
    (void)state;
    assert_null(ofpi_ids_find(&ids, 0));
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(add(), i);
    assert_null(ofpi_ids_find(&ids, 1000));
    assert_int_equal(ids.live, 1000);
}

static void test_the_first_index_and_generation_are_the_owners(void **state)
{
    (void)state;
    ofpi_ids_init(&ids, 1, 77);
    for (uint32_t i = 1; i < 100; i++)
        assert_int_equal(add(), 77u << 20 | i);
    assert_null(ofpi_ids_find(&ids, 77u << 20));
}

/* Fresh slots first, then the one freed longest ago, under a number that nobody has seen. */
static void test_freed_slots_come_back_in_order_under_other_ids(void **state)
{
    static const uint32_t freed[4] = {2, 0, 15, 1};

    (void)state;
    for (int i = 0; i < FIRST_SLOTS; i++)
        add();
    for (int i = 0; i < 4; i++)
        ofpi_ids_remove(&ids, freed[i]);
    assert_int_equal(ids.live, FIRST_SLOTS - 4);
    for (int i = 0; i < 4; i++) {
        assert_null(ofpi_ids_find(&ids, freed[i]));
        /* Nor does the id to come name anything before it is given out. */
        assert_null(ofpi_ids_find(&ids, 1u << 20 | freed[i]));
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(add(), 1u << 20 | freed[i]);
    for (int i = 0; i < 4; i++)
        assert_null(ofpi_ids_find(&ids, freed[i]));
    assert_int_equal(add(), FIRST_SLOTS);
}

static int compare(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

    return (a > b) - (a < b);
}

/* All slots of the smallest table but one are in use for good, so that one is driven through all that it has. */
static void drive_one_slot(uint32_t first_generation)
{
    static uint32_t seen[OFPI_ID_GENERATIONS];
    uint32_t slot;

    ofpi_ids_close(&ids);
    ofpi_ids_init(&ids, 0, first_generation);
    for (int i = 0; i < FIRST_SLOTS - 1; i++)
        add();
    for (uint32_t i = 0; i < OFPI_ID_GENERATIONS; i++) {
        assert_int_equal(ids.capacity, FIRST_SLOTS);
        seen[i] = add();
        assert_int_equal(ofpi_index_of_id(seen[i]), FIRST_SLOTS - 1);
        assert_int_not_equal(seen[i], OFP_PEER_ANY);
        assert_int_not_equal(seen[i], OFP_PEER_UNKNOWN);
        assert_true(seen[i] >> 20 < OFPI_ID_GENERATIONS);
        ofpi_ids_remove(&ids, seen[i]);
        assert_null(ofpi_ids_find(&ids, seen[i]));
    }
    /* It is retired: another one comes, and none of its ids ever names anything again. */
    slot = add();
    assert_int_equal(slot, first_generation << 20 | FIRST_SLOTS);
    for (uint32_t i = 0; i < OFPI_ID_GENERATIONS; i++)
        assert_null(ofpi_ids_find(&ids, seen[i]));
    qsort(seen, OFPI_ID_GENERATIONS, sizeof(seen[0]), compare);
    for (uint32_t i = 1; i < OFPI_ID_GENERATIONS; i++)
        assert_int_not_equal(seen[i - 1], seen[i]);
    assert_int_equal(ids.live, FIRST_SLOTS);
}

static void test_a_slot_whose_generations_are_used_up_is_retired(void **state)
{
    (void)state;
    drive_one_slot(0);
    drive_one_slot(1);
    drive_one_slot(4094);
}

static void test_a_full_table_says_so_and_takes_again_what_was_freed(void **state)
{
    uint32_t id = 5, last = 0;

    (void)state;
    for (uint32_t i = 0; i < OFPI_ID_SLOTS; i++)
        assert_int_equal(ofpi_ids_add(&ids, &object, &last), 0);
    assert_int_equal(last, OFPI_ID_SLOTS - 1);
    assert_int_equal(ofpi_ids_add(&ids, &object, &id), -OFP_EEXHAUSTED);
    assert_int_equal(id, 5);
    assert_int_equal(ids.live, OFPI_ID_SLOTS);
    ofpi_ids_remove(&ids, 1234);
    assert_int_equal(add(), 1u << 20 | 1234);
    assert_int_equal(ofpi_ids_add(&ids, &object, &id), -OFP_EEXHAUSTED);
}

/* The last slot of a full table in its last generation comes closest to the numbers that are no ids. */
static void test_no_id_is_a_special_value(void **state)
{
    uint32_t id = 0;

    (void)state;
    ofpi_ids_init(&ids, 0, OFPI_ID_GENERATIONS - 1);
    for (uint32_t i = 0; i < OFPI_ID_SLOTS; i++)
        assert_int_equal(ofpi_ids_add(&ids, &object, &id), 0);
    assert_true(id < OFP_PEER_UNKNOWN && id < OFP_PEER_ANY);
    assert_null(ofpi_ids_find(&ids, OFP_PEER_ANY));
    assert_null(ofpi_ids_find(&ids, OFP_PEER_UNKNOWN));
}

static void test_objects_in_order_of_their_slots(void **state)
{
    static int objects[40];
    uint32_t given[40], cursor = 0;

    (void)state;
    assert_null(ofpi_ids_find_next(&ids, &cursor));
    for (int i = 0; i < 40; i++)
        assert_int_equal(ofpi_ids_add(&ids, &objects[i], &given[i]), 0);
    for (int i = 0; i < 40; i += 3)
        ofpi_ids_remove(&ids, given[i]);
    for (int i = 0; i < 40; i++)
        if (i % 3)
            assert_ptr_equal(ofpi_ids_find_next(&ids, &cursor), &objects[i]);
    assert_null(ofpi_ids_find_next(&ids, &cursor));
    cursor = UINT32_MAX;
    assert_null(ofpi_ids_find_next(&ids, &cursor));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fresh_ids_count_from_zero, open_ids, close_ids),
        cmocka_unit_test_setup_teardown(test_the_first_index_and_generation_are_the_owners, open_ids, close_ids),
        cmocka_unit_test_setup_teardown(test_freed_slots_come_back_in_order_under_other_ids, open_ids, close_ids),
        cmocka_unit_test_setup_teardown(test_a_slot_whose_generations_are_used_up_is_retired, open_ids, close_ids),
        cmocka_unit_test_setup_teardown(test_a_full_table_says_so_and_takes_again_what_was_freed, open_ids, close_ids),
        cmocka_unit_test_setup_teardown(test_no_id_is_a_special_value, open_ids, close_ids),
        cmocka_unit_test_setup_teardown(test_objects_in_order_of_their_slots, open_ids, close_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
