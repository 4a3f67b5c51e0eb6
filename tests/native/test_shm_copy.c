/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between two lists of pieces, by ordinary and by nontemporal stores, beside a copy byte by byte. Pieces begin and
 * end at any byte, and some are shorter than a cache line or empty.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/copy.h"

#define SIZE 8192u
#define PIECES 64
#define GUARD 0xa5

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

/* Cut the first `length` bytes of `memory` into pieces, with gaps between them. */
static void cut_pieces(struct iovec *pieces, uint8_t *memory, uint64_t length)
{
    for (uint32_t i = 0; i < PIECES; i++) {
        uint64_t part = i == PIECES - 1 ? length : draw(3) ? draw(700) : draw(3);

        part = part < length ? part : length;
        memory += draw(70);
        pieces[i] = (struct iovec){memory, part};
        memory += part;
        length -= part;
    }
}

/* The pieces' bytes in a row: read them, or write them. */
static void move_bytes(const struct iovec *pieces, uint8_t *row, bool out)
{
    for (uint32_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < pieces[i].iov_len; k++, row++)
            if (out)
                *row = ((uint8_t *)pieces[i].iov_base)[k];
            else
                ((uint8_t *)pieces[i].iov_base)[k] = *row;
}

static void copy_once(bool nontemporal)
{
    static uint8_t from[SIZE + PIECES * 70], to[sizeof(from)], expected[sizeof(from)], row[SIZE];
    struct iovec sources[PIECES + 1] = {{0}}, targets[PIECES + 1] = {{0}}, places[PIECES];
    uint64_t length = draw(SIZE);

    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (uint8_t)draw(256);
    memset(to, GUARD, sizeof(to));
    memset(expected, GUARD, sizeof(expected));
    cut_pieces(sources, from, length);
    cut_pieces(targets, to, length);
    move_bytes(sources, row, true);
    for (uint32_t i = 0; i < PIECES; i++)
        places[i] = (struct iovec){expected + ((uint8_t *)targets[i].iov_base - to), targets[i].iov_len};
    move_bytes(places, row, false);
    shm_pieces_copy(targets, sources, length, nontemporal);
    assert_memory_equal(to, expected, sizeof(to));
}

static void ordinary_stores_copy_what_is_there(void **state)
{
    (void)state;
    seed = 1;
    for (int i = 0; i < 300; i++)
        copy_once(false);
}

static void nontemporal_stores_copy_what_is_there(void **state)
{
    (void)state;
    seed = 2;
    for (int i = 0; i < 300; i++)
        copy_once(true);
}

static void a_long_copy_has_no_seams(void **state)
{
    uint64_t length = 3 * SHM_COPY_SLICE + 77;
    uint8_t *from = malloc(length), *to = calloc(1, length);
    struct iovec source = {from, length}, target = {to, length};

    (void)state;
    assert_non_null(from);
    assert_non_null(to);
    for (uint64_t i = 0; i < length; i++)
        from[i] = (uint8_t)(i * 131 >> 3);
    shm_pieces_copy(&target, &source, length, false);
    assert_memory_equal(to, from, length);
    free(from);
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_stores_copy_what_is_there),
        cmocka_unit_test(nontemporal_stores_copy_what_is_there),
        cmocka_unit_test(a_long_copy_has_no_seams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
