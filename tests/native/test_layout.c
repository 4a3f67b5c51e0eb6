/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts: every part of small ones and random parts of larger ones against a list of addresses, and wrong ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ofipy/iov.h"

#define PARTS 4
#define RANK 3
#define BYTES 4096
/* Bytes of the longest layout that random_layout makes. */
#define LONGEST 1024

static unsigned char memory[BYTES], before[BYTES];

struct made {
    struct ofp_layout layout;
    struct ofp_layout_part parts[PARTS];
    struct ofp_dimension dimensions[PARTS * RANK];
    unsigned char *places[PARTS * LONGEST]; /* the model: the address of each byte */
};

static uint32_t random_below(uint32_t bound)
{
    static uint64_t state = 0x9e3779b97f4a7c15;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % bound;
}

static void list_places(struct made *made, uint64_t *length, const struct ofp_layout_part *part, uint32_t d,
                        unsigned char *at)
{
    const struct ofp_dimension *dimension = &made->dimensions[part->dimension + d];

    if (d == part->rank) {
        for (uint64_t i = 0; i < part->run; i++)
            made->places[(*length)++] = at + i;
        return;
    }
    for (uint64_t i = 0; i < dimension->count; i++)
        list_places(made, length, part, d + 1, at + (int64_t)i * dimension->stride);
}

/* No two bytes of a part share a place: each dimension steps over all that the inner ones span. */
static void add_part(struct made *made, unsigned char *base, uint64_t *start)
{
    struct ofp_layout_part *part = &made->parts[made->layout.part_count++];
    uint64_t span;

    *part = (struct ofp_layout_part){.run = 1 + random_below(17),
                                     .rank = random_below(RANK + 1),
                                     .dimension = made->layout.dimension_count,
                                     .start = *start};
    made->layout.dimension_count += part->rank;
    span = part->length = part->run;
    for (uint32_t d = part->rank; d-- > 0;) {
        uint64_t count = 1 + random_below(3), stride = span + random_below(3);
        bool backwards = random_below(4) == 0;

        made->dimensions[part->dimension + d] =
            (struct ofp_dimension){.count = count, .stride = backwards ? -(int64_t)stride : (int64_t)stride};
        if (backwards)
            base += stride * (count - 1);
        part->length *= count;
        span = stride * (count - 1) + span;
    }
    part->address = (uintptr_t)base;
    list_places(made, start, part, 0, base);
}

static void make_layout(struct made *made, uint32_t parts)
{
    uint64_t start = 0;

    *made = (struct made){.layout = {.parts = (uintptr_t)made->parts, .dimensions = (uintptr_t)made->dimensions}};
    for (uint32_t i = 0; i < parts; i++)
        add_part(made, memory + i * LONGEST, &start);
    made->layout.length = start;
    assert_int_equal(ofp_layout_check(&made->layout), 0);
}

static void fill_memory(void)
{
    for (int i = 0; i < BYTES; i++)
        memory[i] = (unsigned char)random_below(256);
    memcpy(before, memory, BYTES);
}

static void check_part(struct made *made, uint64_t offset, uint64_t length)
{
    const struct iovec *iov = (const struct iovec *)(const void *)&made->layout;
    uint64_t there = made->layout.length, i;
    unsigned char packed[PARTS * LONGEST + 1];
    struct ofp_iov_walk walk = {iov, OFP_LAYOUT, offset, length};
    struct iovec piece;

    there = offset >= there ? 0 : length < there - offset ? length : there - offset;
    fill_memory();
    packed[there] = 0xee;
    assert_int_equal(ofp_iov_gather(packed, iov, OFP_LAYOUT, offset, length), there);
    for (i = 0; i < there; i++)
        assert_int_equal(packed[i], *made->places[offset + i]);
    assert_int_equal(packed[there], 0xee);
    for (i = 0; ofp_iov_next(&walk, &piece); i += piece.iov_len)
        for (uint64_t k = 0; k < piece.iov_len; k++)
            assert_ptr_equal((unsigned char *)piece.iov_base + k, made->places[offset + i + k]);
    assert_int_equal(i, there);
    /* Written back inverted, exactly these bytes have changed. */
    for (i = 0; i < there; i++)
        packed[i] = (unsigned char)~packed[i];
    assert_int_equal(ofp_iov_scatter(iov, OFP_LAYOUT, offset, packed, length), there);
    for (i = 0; i < there; i++) {
        unsigned char *place = made->places[offset + i];

        assert_int_equal(*place, (unsigned char)~before[place - memory]);
        *place = before[place - memory];
    }
    assert_memory_equal(memory, before, BYTES);
}

static void test_every_part_of_small_layouts(void **state)
{
    static struct made made;

    (void)state;
    for (int round = 0; round < 60; round++) {
        do
            make_layout(&made, random_below(3));
        while (made.layout.length > 40);
        for (uint64_t offset = 0; offset <= made.layout.length + 1; offset++)
            for (uint64_t length = 0; length <= made.layout.length + 1 - offset + 1; length++)
                check_part(&made, offset, length);
    }
}

static void test_parts_of_larger_layouts(void **state)
{
    static struct made made;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        make_layout(&made, 1 + random_below(PARTS));
        for (int i = 0; i < 5; i++)
            check_part(&made, random_below((uint32_t)made.layout.length),
                       random_below((uint32_t)made.layout.length + 2));
        check_part(&made, 0, OFP_IOV_ALL);
    }
}

static void test_wrong_layouts(void **state)
{
    struct ofp_dimension huge[2] = {{UINT64_MAX / 8, 8}, {8, 8}};
    struct ofp_layout_part part = {.run = 8, .length = 64, .rank = 1};
    struct ofp_dimension dimension = {8, 16};
    struct ofp_layout layout = {.length = 64,
                                .parts = (uintptr_t)&part,
                                .dimensions = (uintptr_t)&dimension,
                                .part_count = 1,
                                .dimension_count = 1};

    (void)state;
    assert_int_equal(ofp_layout_check(&layout), 0);
    layout.length = 63;
    assert_int_equal(ofp_layout_check(&layout), -EINVAL);
    layout.length = 64;
    part.run = 0;
    assert_int_equal(ofp_layout_check(&layout), -EINVAL);
    part.run = 8;
    part.length = 72;
    assert_int_equal(ofp_layout_check(&layout), -EINVAL);
    part.length = 64;
    part.start = 8;
    assert_int_equal(ofp_layout_check(&layout), -EINVAL);
    part.start = 0;
    part.rank = 2;
    assert_int_equal(ofp_layout_check(&layout), -EINVAL);
    part.rank = OFP_RANK_MAX + 1;
    assert_int_equal(ofp_layout_check(&layout), -EINVAL);
    part.rank = 1;
    part.dimension = 1;
    assert_int_equal(ofp_layout_check(&layout), -EINVAL);
    part.dimension = UINT32_MAX;
    assert_int_equal(ofp_layout_check(&layout), -EINVAL);
    part.dimension = 0;
    dimension.count = 0;
    assert_int_equal(ofp_layout_check(&layout), -EINVAL);
    layout.dimensions = (uintptr_t)huge;
    layout.dimension_count = part.rank = 2;
    assert_int_equal(ofp_layout_check(&layout), -EMSGSIZE);
}

static void test_lengths_that_64_bits_cannot_count(void **state)
{
    struct ofp_layout_part parts[2] = {{.run = UINT64_MAX, .length = UINT64_MAX}, {.run = 2, .length = 2}};
    struct ofp_layout layout = {.length = 1, .parts = (uintptr_t)parts, .part_count = 2};

    (void)state;
    parts[1].start = UINT64_MAX;
    assert_int_equal(ofp_layout_check(&layout), -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_part_of_small_layouts),
        cmocka_unit_test(test_parts_of_larger_layouts),
        cmocka_unit_test(test_wrong_layouts),
        cmocka_unit_test(test_lengths_that_64_bits_cannot_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
