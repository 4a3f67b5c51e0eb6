/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "match/match_index.h"

static const uint64_t seed[2] = {0x243f6a8885a308d3u, 0x13198a2e03707344u};

static struct ofpi_match_node node_with(uint64_t tag, uint32_t source, uint64_t sequence)
{
    return (struct ofpi_match_node){.key = {tag, ofpi_match_origin_build(1, source)}, .sequence = sequence};
}

static struct ofpi_match_node *find(const struct ofpi_match_index *index, uint64_t tag, uint32_t source)
{
    return ofpi_match_index_find(index, (struct ofpi_match_key){tag, ofpi_match_origin_build(1, source)});
}

static int index_setup(void **state)
{
    struct ofpi_match_index *index = malloc(sizeof(*index));

    *state = index;
    return !index || ofpi_match_index_open(index, seed);
}

static int index_teardown(void **state)
{
    ofpi_match_index_close(*state);
    free(*state);
    return 0;
}

static void test_keys_differ_in_tag_source_and_channel(void **state)
{
    struct ofpi_match_index *index = *state;
    struct ofpi_match_node node = node_with(7, 3, 1);

    assert_null(find(index, 7, 3));
    ofpi_match_index_insert(index, &node);
    assert_ptr_equal(find(index, 7, 3), &node);
    assert_null(find(index, 8, 3));
    assert_null(find(index, 7, 4));
    assert_null(ofpi_match_index_find(index, (struct ofpi_match_key){7, ofpi_match_origin_build(0, 3)}));
    ofpi_match_index_remove(index, &node);
    assert_null(find(index, 7, 3));
    assert_int_equal(index->count, 0);
    assert_int_equal(index->keys, 0);
}

static void test_same_key_is_first_in_first_out(void **state)
{
    struct ofpi_match_index *index = *state;
    struct ofpi_match_node nodes[5];

    for (int i = 0; i < 5; i++) {
        nodes[i] = node_with(1, 1, (uint64_t)i);
        ofpi_match_index_insert(index, &nodes[i]);
    }
    assert_int_equal(index->keys, 1);
    assert_int_equal(index->count, 5);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(find(index, 1, 1), &nodes[i]);
        ofpi_match_index_remove(index, &nodes[i]);
    }
    assert_null(find(index, 1, 1));
}

static void test_removal_from_the_middle_and_the_end(void **state)
{
    struct ofpi_match_index *index = *state;
    struct ofpi_match_node nodes[4], late = node_with(1, 1, 9);

    for (int i = 0; i < 4; i++) {
        nodes[i] = node_with(1, 1, (uint64_t)i);
        ofpi_match_index_insert(index, &nodes[i]);
    }
    ofpi_match_index_remove(index, &nodes[1]);
    ofpi_match_index_remove(index, &nodes[3]);
    ofpi_match_index_insert(index, &late);
    assert_ptr_equal(find(index, 1, 1), &nodes[0]);
    ofpi_match_index_remove(index, &nodes[0]);
    assert_ptr_equal(find(index, 1, 1), &nodes[2]);
    ofpi_match_index_remove(index, &nodes[2]);
    assert_ptr_equal(find(index, 1, 1), &late);
}

static void test_one_that_comes_back_finds_its_old_place(void **state)
{
    struct ofpi_match_index *index = *state;
    struct ofpi_match_node nodes[5];
    /* Removed and put back, each in turn: head, middle, the last but one, the end. */
    const int back[] = {0, 2, 3, 4};

    for (int i = 0; i < 5; i++) {
        nodes[i] = node_with(1, 1, (uint64_t)i);
        ofpi_match_index_insert(index, &nodes[i]);
    }
    for (int i = 0; i < 4; i++) {
        ofpi_match_index_remove(index, &nodes[back[i]]);
        ofpi_match_index_insert(index, &nodes[back[i]]);
    }
    ofpi_match_index_remove(index, &nodes[1]);
    ofpi_match_index_remove(index, &nodes[0]);
    ofpi_match_index_insert(index, &nodes[1]);
    ofpi_match_index_insert(index, &nodes[0]);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(find(index, 1, 1), &nodes[i]);
        ofpi_match_index_remove(index, &nodes[i]);
    }
}

/* Every key is found at every step of every growth, whichever table it lies in by then. */
static void test_lookups_and_removals_during_growth(void **state)
{
    enum { COUNT = 3000 };
    struct ofpi_match_index *index = *state;
    struct ofpi_match_node *nodes = calloc(COUNT, sizeof(*nodes));
    bool *present = calloc(COUNT, sizeof(*present));
    bool grew = false;

    assert_non_null(nodes);
    assert_non_null(present);
    for (int i = 0; i < COUNT; i++) {
        nodes[i] = node_with((uint64_t)i << 20, 1, (uint64_t)i);
        ofpi_match_index_insert(index, &nodes[i]);
        present[i] = true;
        grew |= index->old_buckets && index->moved > 0;
        if (i % 7 == 0) {
            ofpi_match_index_remove(index, &nodes[i / 2]);
            present[i / 2] = false;
        }
        if (index->old_buckets || i % 64 == 0) {
            for (int j = 0; j <= i; j++)
                assert_ptr_equal(find(index, (uint64_t)j << 20, 1), present[j] ? &nodes[j] : NULL);
        }
        if (!present[i / 2]) {
            ofpi_match_index_insert(index, &nodes[i / 2]);
            present[i / 2] = true;
        }
    }
    assert_true(grew);
    /* Half load at most, once no growth is on its way. */
    assert_true(index->keys <= (1ull << (64 - index->shift)));
    free(present);
    free(nodes);
}

static void test_a_ring_moves_as_one(void **state)
{
    enum { KEYS = 200, SAME = 3 };
    struct ofpi_match_index *index = *state;
    struct ofpi_match_node *nodes = calloc(KEYS * SAME, sizeof(*nodes));

    assert_non_null(nodes);
    for (int i = 0; i < KEYS * SAME; i++) {
        nodes[i] = node_with((uint64_t)(i % KEYS), 1, (uint64_t)i);
        ofpi_match_index_insert(index, &nodes[i]);
    }
    assert_int_equal(index->keys, KEYS);
    for (int i = 0; i < KEYS * SAME; i++) {
        assert_ptr_equal(find(index, (uint64_t)(i % KEYS), 1), &nodes[i]);
        ofpi_match_index_remove(index, &nodes[i]);
    }
    assert_int_equal(index->count, 0);
    free(nodes);
}

static uint64_t longest_chain(const struct ofpi_match_index *index)
{
    uint64_t longest = 0;

    for (uint64_t i = 0; i < 1ull << (64 - index->shift); i++) {
        uint64_t length = 0;

        for (const struct ofpi_match_node *node = index->buckets[i]; node; node = node->next)
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Tags and sources that programs use; with a good hash the fullest of n buckets holds about log n / log log n. */
static void test_regular_tags_spread(void **state)
{
    enum { COUNT = 8192 };
    struct ofpi_match_node *nodes = calloc(COUNT, sizeof(*nodes));

    (void)state;
    assert_non_null(nodes);
    for (int shift = 0; shift < 64 - 13; shift += 5) {
        struct ofpi_match_index index;

        assert_int_equal(ofpi_match_index_open(&index, seed), 0);
        for (int i = 0; i < COUNT; i++) {
            nodes[i] = node_with((uint64_t)i << shift, (uint32_t)(i % 3), (uint64_t)i);
            ofpi_match_index_insert(&index, &nodes[i]);
        }
        assert_null(index.old_buckets);
        assert_true(longest_chain(&index) <= 16);
        ofpi_match_index_close(&index);
    }
    free(nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_keys_differ_in_tag_source_and_channel, index_setup, index_teardown),
        cmocka_unit_test_setup_teardown(test_same_key_is_first_in_first_out, index_setup, index_teardown),
        cmocka_unit_test_setup_teardown(test_removal_from_the_middle_and_the_end, index_setup, index_teardown),
        cmocka_unit_test_setup_teardown(test_one_that_comes_back_finds_its_old_place, index_setup, index_teardown),
        cmocka_unit_test_setup_teardown(test_lookups_and_removals_during_growth, index_setup, index_teardown),
        cmocka_unit_test_setup_teardown(test_a_ring_moves_as_one, index_setup, index_teardown),
        cmocka_unit_test(test_regular_tags_spread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
