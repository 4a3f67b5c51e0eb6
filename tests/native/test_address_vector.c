/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address_vector.h"
#include "base/ids.h"

enum { ADDRESSES = 3000 };

static struct ofpi_av_table *table;

static int open_table(void **state)
{
    (void)state;
    table = ofpi_av_table_create(NULL);
    return table ? 0 : -1;
}

static int close_table(void **state)
{
    (void)state;
    ofpi_av_table_free(table);
    return 0;
}

static uint32_t insert(const char *address)
{
    uint32_t index = UINT32_MAX;

    assert_int_equal(ofpi_av_table_insert(table, address, strlen(address), &index), 0);
    return index;
}

static void name_of(uint32_t number, char name[32]) { snprintf(name, 32, "peer-%u.example", number); }

static void test_insert_find_lookup(void **state)
{
    uint32_t index = 0;
    size_t length = 0;
    uint32_t a = insert("a"), b = insert("bb");

    (void)state;
    assert_int_not_equal(a, b);
    assert_int_equal(ofpi_av_table_count(table), 2);
    assert_int_equal(ofpi_av_table_find(table, "bb", 2, &index), 0);
    assert_int_equal(index, b);
    assert_memory_equal(ofpi_av_table_find_address(table, b, &length), "bb", 2);
    assert_int_equal(length, 2);
    assert_int_equal(ofpi_av_table_find(table, "b", 1, &index), -ENOENT);
    assert_int_equal(ofpi_av_table_find(table, "bc", 2, &index), -ENOENT);
}

static void test_known_address_keeps_its_index(void **state)
{
    uint32_t a = insert("a");

    (void)state;
    insert("b");
    assert_int_equal(insert("a"), a);
    assert_int_equal(ofpi_av_table_count(table), 2);
}

static void test_empty_table_and_unknown_index(void **state)
{
    uint32_t index;
    size_t length;

    (void)state;
    assert_int_equal(ofpi_av_table_find(table, "a", 1, &index), -ENOENT);
    assert_null(ofpi_av_table_find_address(table, 0, &length));
    assert_int_equal(ofpi_av_table_remove(table, 0), -OFP_EADDRNOTAVAIL);
    assert_null(ofpi_av_table_find_address(table, UINT32_MAX, &length));
    assert_int_equal(ofpi_av_table_remove(table, UINT32_MAX), -OFP_EADDRNOTAVAIL);
}

static void test_addresses_that_share_a_prefix_or_end_in_zeros_differ(void **state)
{
    static const char zeros[64];
    uint32_t indices[65], found;

    (void)state;
    for (size_t length = 0; length <= sizeof(zeros); length++)
        assert_int_equal(ofpi_av_table_insert(table, zeros, length, &indices[length]), 0);
    assert_int_equal(ofpi_av_table_count(table), 65);
    for (size_t length = 0; length <= sizeof(zeros); length++) {
        assert_int_equal(ofpi_av_table_find(table, zeros, length, &found), 0);
        assert_int_equal(found, indices[length]);
    }
}

static void test_removed_address_is_gone_and_comes_back_elsewhere(void **state)
{
    uint32_t a = insert("a"), index;
    size_t length;

    (void)state;
    insert("b");
    assert_int_equal(ofpi_av_table_remove(table, a), 0);
    assert_int_equal(ofpi_av_table_remove(table, a), -OFP_EADDRNOTAVAIL);
    assert_null(ofpi_av_table_find_address(table, a, &length));
    assert_int_equal(ofpi_av_table_find(table, "a", 1, &index), -ENOENT);
    assert_int_not_equal(insert("a"), a);
}

/* Until the table is full no index comes twice; then the one removed longest ago comes first. */
static void test_freed_indices_are_reused_last_and_in_order(void **state)
{
    uint32_t removed[4] = {2, 0, 3, 1}, next = 0, number = 0;
    bool seen[64] = {false};
    char name[32];
    size_t length;

    (void)state;
    for (; number < 4; number++) {
        name_of(number, name);
        assert_int_equal(insert(name), number);
        seen[number] = true;
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(ofpi_av_table_remove(table, removed[i]), 0);
    while (next < 4) {
        uint32_t index, place;

        assert_true(number < 64);
        name_of(number++, name);
        index = insert(name);
        place = ofpi_index_of_id(index);
        if (seen[place]) {
            /* In its place, but not its number. */
            assert_int_equal(place, removed[next]);
            assert_int_not_equal(index, removed[next]);
            assert_null(ofpi_av_table_find_address(table, removed[next], &length));
            assert_int_equal(ofpi_av_table_remove(table, removed[next++]), -OFP_EADDRNOTAVAIL);
        } else {
            assert_int_equal(next, 0);
            assert_int_equal(index, place);
        }
        seen[place] = true;
    }
}

static void test_stored_address_does_not_move(void **state)
{
    uint32_t first = insert("first");
    size_t length;
    const void *stored = ofpi_av_table_find_address(table, first, &length);
    char name[32];

    (void)state;
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        name_of(i, name);
        insert(name);
    }
    assert_ptr_equal(ofpi_av_table_find_address(table, first, &length), stored);
    assert_memory_equal(stored, "first", length);
}

static void test_iteration_visits_every_index_in_use(void **state)
{
    uint32_t first = insert("a"), second = insert("b"), third = insert("c"), cursor = 0, index;

    (void)state;
    assert_int_equal(ofpi_av_table_remove(table, second), 0);
    assert_int_equal(ofpi_av_table_find_next(table, &cursor, &index), 0);
    assert_int_equal(index, first);
    assert_int_equal(ofpi_av_table_find_next(table, &cursor, &index), 0);
    assert_int_equal(index, third);
    assert_int_equal(ofpi_av_table_find_next(table, &cursor, &index), -ENOENT);
    cursor = UINT32_MAX;
    assert_int_equal(ofpi_av_table_find_next(table, &cursor, &index), -ENOENT);
}

/* Random inserts and removals against a plain array. */
static void test_random_use_against_a_model(void **state)
{
    static uint32_t model[ADDRESSES]; /* index + 1; 0: not in the table */
    unsigned seed = 3;
    uint32_t count = 0, index;
    char name[32];
    size_t length;

    (void)state;
    memset(model, 0, sizeof(model));
    for (int step = 0; step < 30000; step++) {
        uint32_t number = (uint32_t)rand_r(&seed) % ADDRESSES;

        name_of(number, name);
        if (model[number]) {
            assert_int_equal(ofpi_av_table_find(table, name, strlen(name), &index), 0);
            assert_int_equal(index + 1, model[number]);
            assert_memory_equal(ofpi_av_table_find_address(table, index, &length), name, strlen(name));
            assert_int_equal(ofpi_av_table_remove(table, index), 0);
            model[number] = 0;
            count--;
        } else {
            assert_int_equal(ofpi_av_table_find(table, name, strlen(name), &index), -ENOENT);
            model[number] = insert(name) + 1;
            count++;
        }
        assert_int_equal(ofpi_av_table_count(table), count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_insert_find_lookup, open_table, close_table),
        cmocka_unit_test_setup_teardown(test_known_address_keeps_its_index, open_table, close_table),
        cmocka_unit_test_setup_teardown(test_empty_table_and_unknown_index, open_table, close_table),
        cmocka_unit_test_setup_teardown(test_addresses_that_share_a_prefix_or_end_in_zeros_differ, open_table,
                                        close_table),
        cmocka_unit_test_setup_teardown(test_removed_address_is_gone_and_comes_back_elsewhere, open_table, close_table),
        cmocka_unit_test_setup_teardown(test_freed_indices_are_reused_last_and_in_order, open_table, close_table),
        cmocka_unit_test_setup_teardown(test_stored_address_does_not_move, open_table, close_table),
        cmocka_unit_test_setup_teardown(test_iteration_visits_every_index_in_use, open_table, close_table),
        cmocka_unit_test_setup_teardown(test_random_use_against_a_model, open_table, close_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
