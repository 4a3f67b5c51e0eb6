/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of memory in several pieces: the edges by name, and every part of small vectors against one plain copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ofipy/iov.h"

#define BYTES 12
#define COUNT 5

static char memory[BYTES];

/* abc, nothing, d, nothing at no address, efghijkl */
static const struct iovec pieces[COUNT] = {
    {memory, 3}, {memory + 3, 0}, {memory + 3, 1}, {NULL, 0}, {memory + 4, 8},
};

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < BYTES; i++)
        memory[i] = (char)('a' + i);
    return 0;
}

static void test_every_part_is_the_same_as_of_one_piece(void **state)
{
    (void)state;
    for (uint64_t offset = 0; offset <= BYTES + 2; offset++) {
        for (uint64_t length = 0; length <= BYTES + 2; length++) {
            uint64_t there = offset >= BYTES ? 0 : length < BYTES - offset ? length : BYTES - offset;
            char copied[BYTES + 2], written[BYTES];

            memset(copied, '.', sizeof(copied));
            assert_int_equal(ofp_iov_gather(copied, pieces, COUNT, offset, length), there);
            assert_memory_equal(copied, memory + (offset < BYTES ? offset : 0), there);
            for (uint64_t i = there; i < sizeof(copied); i++)
                assert_int_equal(copied[i], '.');
            memcpy(written, memory, BYTES);
            assert_int_equal(ofp_iov_scatter(pieces, COUNT, offset, "ABCDEFGHIJKLMN", length), there);
            for (uint64_t i = 0; i < BYTES; i++)
                assert_int_equal(memory[i], i >= offset && i < offset + there ? 'A' + (char)(i - offset) : written[i]);
            fill(NULL);
        }
    }
}

static void test_cut_lists_the_pieces_that_are_not_empty(void **state)
{
    struct iovec cut[COUNT];

    (void)state;
    assert_int_equal(ofp_iov_cut(cut, COUNT, pieces, COUNT, 1, 5), 3);
    assert_ptr_equal(cut[0].iov_base, memory + 1);
    assert_int_equal(cut[0].iov_len, 2);
    assert_ptr_equal(cut[1].iov_base, memory + 3);
    assert_int_equal(cut[1].iov_len, 1);
    assert_ptr_equal(cut[2].iov_base, memory + 4);
    assert_int_equal(cut[2].iov_len, 2);
    assert_int_equal(ofp_iov_cut(cut, COUNT, pieces, COUNT, 4, OFP_IOV_ALL), 1);
    assert_int_equal(cut[0].iov_len, 8);
}

static void test_cut_stops_where_its_room_ends(void **state)
{
    struct iovec cut[2] = {{NULL, 0}, {NULL, 99}};

    (void)state;
    assert_int_equal(ofp_iov_cut(cut, 1, pieces, COUNT, 0, OFP_IOV_ALL), 1);
    assert_int_equal(cut[0].iov_len, 3);
    assert_int_equal(cut[1].iov_len, 99);
    assert_int_equal(ofp_iov_cut(cut, 0, pieces, COUNT, 0, OFP_IOV_ALL), 0);
}

static void test_nothing_is_cut_from_nothing(void **state)
{
    struct iovec cut[1];
    const struct iovec empty = {NULL, 0};

    (void)state;
    assert_int_equal(ofp_iov_cut(cut, 1, NULL, 0, 0, OFP_IOV_ALL), 0);
    assert_int_equal(ofp_iov_cut(cut, 1, &empty, 1, 0, OFP_IOV_ALL), 0);
    assert_int_equal(ofp_iov_cut(cut, 1, pieces, COUNT, BYTES, OFP_IOV_ALL), 0);
    assert_int_equal(ofp_iov_cut(cut, 1, pieces, COUNT, UINT64_MAX, UINT64_MAX), 0);
    ofp_memory_copy(NULL, NULL, 0);
}

static void test_a_walk_says_how_much_is_missing(void **state)
{
    struct ofp_iov_walk walk = {pieces, COUNT, 10, 5};
    struct iovec piece = {0};

    (void)state;
    assert_true(ofp_iov_next(&walk, &piece));
    assert_int_equal(piece.iov_len, 2);
    assert_false(ofp_iov_next(&walk, &piece));
    assert_int_equal(walk.length, 3);
    assert_false(ofp_iov_next(&walk, &piece));
}

static void test_a_sum_beyond_64_bits_is_refused(void **state)
{
    struct iovec huge[2] = {{NULL, SIZE_MAX}, {NULL, 1}};
    uint64_t length;

    (void)state;
    assert_true(ofp_iov_length(pieces, COUNT, &length));
    assert_int_equal(length, BYTES);
    assert_true(ofp_iov_length(pieces, 0, &length));
    assert_int_equal(length, 0);
    assert_true(ofp_iov_length(huge, 1, &length));
    assert_false(ofp_iov_length(huge, 2, &length));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_part_is_the_same_as_of_one_piece, fill),
        cmocka_unit_test_setup(test_cut_lists_the_pieces_that_are_not_empty, fill),
        cmocka_unit_test_setup(test_cut_stops_where_its_room_ends, fill),
        cmocka_unit_test_setup(test_nothing_is_cut_from_nothing, fill),
        cmocka_unit_test_setup(test_a_walk_says_how_much_is_missing, fill),
        cmocka_unit_test_setup(test_a_sum_beyond_64_bits_is_refused, fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
