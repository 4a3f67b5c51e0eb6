/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copy out of and into the memory of a layout (types.h): any part of it, from any offset, so that a transport packs
 * and unpacks it piece by piece. iov.h calls these functions; a transport need not.
 *
 * A position in a part is the index of each dimension and the address of the element there. Moving to the next element
 * of the last dimension costs an addition; the other dimensions are carried once per row.
 */
#ifndef OFIPY_LAYOUT_H
#define OFIPY_LAYOUT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "types.h"

#define OFPI_ALWAYS_INLINE static inline __attribute__((always_inline, unused))

OFPI_ALWAYS_INLINE const struct ofp_layout_part *ofp_layout_parts_of(const struct ofp_layout *layout)
{
    return (const struct ofp_layout_part *)(uintptr_t)layout->parts;
}
OFPI_ALWAYS_INLINE const struct ofp_dimension *ofp_layout_dimensions_of(const struct ofp_layout *layout,
                                                                        const struct ofp_layout_part *part)
{
    return (const struct ofp_dimension *)(uintptr_t)layout->dimensions + part->dimension;
}

/* Check a caller's layout: 0; -EINVAL: its lengths contradict each other; -EMSGSIZE: 64 bits cannot count them. */
static __attribute__((noinline, unused)) int ofp_layout_check(const struct ofp_layout *layout)
{
    uint64_t start = 0;

    for (uint32_t i = 0; i < layout->part_count; i++) {
        const struct ofp_layout_part *part = &ofp_layout_parts_of(layout)[i];
        const struct ofp_dimension *dimensions = ofp_layout_dimensions_of(layout, part);
        uint64_t length = part->run;

        if (!part->run || part->rank > OFP_RANK_MAX || part->dimension > layout->dimension_count ||
            part->rank > layout->dimension_count - part->dimension || part->start != start)
            return -EINVAL;
        for (uint32_t d = 0; d < part->rank; d++) {
            if (!dimensions[d].count)
                return -EINVAL;
            if (length > UINT64_MAX / dimensions[d].count)
                return -EMSGSIZE;
            length *= dimensions[d].count;
        }
        if (length != part->length)
            return -EINVAL;
        if (length > UINT64_MAX - start)
            return -EMSGSIZE;
        start += length;
    }
    return start == layout->length ? 0 : -EINVAL;
}

/* The part that contains the byte at `offset`, which is less than the length of the layout. */
static inline const struct ofp_layout_part *ofp_layout_find_part(const struct ofp_layout *layout, uint64_t offset)
{
    const struct ofp_layout_part *parts = ofp_layout_parts_of(layout);
    uint32_t first = 0, count = layout->part_count;

    while (count > 1) {
        uint32_t half = count / 2;

        if (parts[first + half].start <= offset)
            first += half;
        count -= half;
    }
    return &parts[first];
}

/* A position in a part. `row` is the address of the element with index 0 in the last dimension. */
struct ofp_layout_position {
    const struct ofp_layout_part *part;
    const struct ofp_dimension *dimensions;
    char *row;
    uint64_t column, columns; /* index in the last dimension, and its count; 0 and 1 without dimensions */
    int64_t stride;           /* of the last dimension */
    uint64_t index[OFP_RANK_MAX];
};

static inline void ofp_layout_position_set(struct ofp_layout_position *position, const struct ofp_layout *layout,
                                           const struct ofp_layout_part *part, uint64_t element)
{
    position->part = part;
    position->dimensions = ofp_layout_dimensions_of(layout, part);
    position->row = (char *)(uintptr_t)part->address;
    position->column = 0;
    position->columns = 1;
    position->stride = 0;
    for (uint32_t d = part->rank; d-- > 0;) {
        const struct ofp_dimension *dimension = &position->dimensions[d];
        uint64_t index = element % dimension->count;

        element /= dimension->count;
        if (d + 1 == part->rank) {
            position->column = index;
            position->columns = dimension->count;
            position->stride = dimension->stride;
        } else {
            position->index[d] = index;
            position->row += (int64_t)index * dimension->stride;
        }
    }
}

/* Move to the first element of the next row. Behind the last row the position is that of the first one again. */
static inline void ofp_layout_position_carry(struct ofp_layout_position *position)
{
    position->column = 0;
    for (uint32_t d = position->part->rank - 1; d-- > 0;) {
        const struct ofp_dimension *dimension = &position->dimensions[d];

        position->row += dimension->stride;
        if (++position->index[d] < dimension->count)
            return;
        position->index[d] = 0;
        position->row -= (int64_t)dimension->count * dimension->stride;
    }
}

/* Copy `count` elements of `run` bytes, which is a constant where it matters, between a row and packed memory. */
OFPI_ALWAYS_INLINE void ofp_layout_row_copy(char *element, int64_t stride, char *packed, uint64_t count, uint64_t run,
                                            bool scatters)
{
    for (uint64_t i = 0; i < count; i++, element += stride, packed += run)
        memcpy(scatters ? element : packed, scatters ? packed : element, run);
}

OFPI_ALWAYS_INLINE void ofp_layout_elements_copy(char *element, int64_t stride, char *packed, uint64_t count,
                                                 uint64_t run, bool scatters)
{
    switch (run) {
    case 1:
        ofp_layout_row_copy(element, stride, packed, count, 1, scatters);
        break;
    case 2:
        ofp_layout_row_copy(element, stride, packed, count, 2, scatters);
        break;
    case 4:
        ofp_layout_row_copy(element, stride, packed, count, 4, scatters);
        break;
    case 8:
        ofp_layout_row_copy(element, stride, packed, count, 8, scatters);
        break;
    case 16:
        ofp_layout_row_copy(element, stride, packed, count, 16, scatters);
        break;
    default:
        ofp_layout_row_copy(element, stride, packed, count, run, scatters);
    }
}

/* Copy `length` bytes of a part from `offset` on; `length` is within the part, and not 0. */
OFPI_ALWAYS_INLINE void ofp_layout_part_copy(const struct ofp_layout *layout, const struct ofp_layout_part *part,
                                             uint64_t offset, char *packed, uint64_t length, bool scatters)
{
    uint64_t run = part->run, skipped = offset % run;
    struct ofp_layout_position position;

    ofp_layout_position_set(&position, layout, part, offset / run);
    while (length) {
        char *element = position.row + (int64_t)position.column * position.stride + skipped;
        uint64_t count = 1, bytes = run - skipped;

        if (skipped || length < run) {
            /* A piece of one element: where the copy begins, or where it ends. */
            bytes = bytes < length ? bytes : length;
            memcpy(scatters ? element : packed, scatters ? packed : element, bytes);
        } else {
            count = length / run;
            if (count > position.columns - position.column)
                count = position.columns - position.column;
            bytes = count * run;
            ofp_layout_elements_copy(element, position.stride, packed, count, run, scatters);
        }
        skipped = 0;
        packed += bytes;
        length -= bytes;
        position.column += count;
        if (position.column == position.columns && length)
            ofp_layout_position_carry(&position);
    }
}

OFPI_ALWAYS_INLINE uint64_t ofp_layout_copy(const struct ofp_layout *layout, uint64_t offset, char *packed,
                                            uint64_t length, bool scatters)
{
    const struct ofp_layout_part *part;
    uint64_t left;

    if (offset >= layout->length || !length)
        return 0;
    if (length > layout->length - offset)
        length = layout->length - offset;
    part = ofp_layout_find_part(layout, offset);
    for (left = length; left; part++) {
        uint64_t here = part->start + part->length - offset;

        here = here < left ? here : left;
        ofp_layout_part_copy(layout, part, offset - part->start, packed, here, scatters);
        offset += here;
        packed += here;
        left -= here;
    }
    return length;
}

/* Copy the range [offset, offset + length) out of the layout, or into it, as far as it exists. Return the bytes copied. */
static __attribute__((noinline, unused)) uint64_t ofp_layout_gather(const struct ofp_layout *layout, uint64_t offset,
                                                                    void *packed, uint64_t length)
{
    return ofp_layout_copy(layout, offset, packed, length, false);
}
static __attribute__((noinline, unused)) uint64_t ofp_layout_scatter(const struct ofp_layout *layout, uint64_t offset,
                                                                     const void *packed, uint64_t length)
{
    return ofp_layout_copy(layout, offset, (char *)(uintptr_t)packed, length, true);
}

/* The contiguous piece that begins at `offset`. False: the layout ends there. */
static __attribute__((noinline, unused)) bool ofp_layout_find_piece(const struct ofp_layout *layout, uint64_t offset,
                                                                    struct iovec *piece)
{
    const struct ofp_layout_part *part;
    struct ofp_layout_position position;

    if (offset >= layout->length)
        return false;
    part = ofp_layout_find_part(layout, offset);
    offset -= part->start;
    ofp_layout_position_set(&position, layout, part, offset / part->run);
    piece->iov_base = position.row + (int64_t)position.column * position.stride + offset % part->run;
    piece->iov_len = part->run - offset % part->run;
    return true;
}

#endif
