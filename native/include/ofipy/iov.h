/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory in several pieces, and the copy into and out of user memory.
 *
 * A part is the range [offset, offset + length) of the concatenated pieces. If a part extends beyond the last piece,
 * the functions process only what exists, and their result says how much that was. They skip empty pieces.
 *
 * With the count OFP_LAYOUT the pieces are those of a layout: `iov` is then the address of a struct ofp_layout.
 */
#ifndef OFIPY_IOV_H
#define OFIPY_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "layout.h"

/* As `length`: the part extends to the end of the pieces. */
#define OFP_IOV_ALL UINT64_MAX

/*
 * Use this for every copy between user memory and other memory, so that memory which the processor cannot access
 * concerns this file only. Other copies of user memory have a comment that says why. With a constant length this
 * compiles to a load and a store. With length 0 the addresses are ignored.
 */
static inline void ofp_memory_copy(void *to, const void *from, size_t length)
{
    if (length)
        memcpy(to, from, length);
}

/* The layout behind a count of OFP_LAYOUT. */
static inline const struct ofp_layout *ofp_layout_of_iov(const struct iovec *iov)
{
    return (const struct ofp_layout *)(const void *)iov;
}

/* The remainder of a walk over a part. */
struct ofp_iov_walk {
    const struct iovec *iov;
    uint32_t count;
    uint64_t offset, length;
};

static __attribute__((noinline, unused)) bool ofp_iov_next_of_layout(struct ofp_iov_walk *walk, struct iovec *piece)
{
    if (!ofp_layout_find_piece(ofp_layout_of_iov(walk->iov), walk->offset, piece))
        return false;
    if (piece->iov_len > walk->length)
        piece->iov_len = walk->length;
    walk->offset += piece->iov_len;
    walk->length -= piece->iov_len;
    return true;
}

/* Get the next piece of the part. False: there is none; walk->length says how many bytes are missing. */
static inline bool ofp_iov_next(struct ofp_iov_walk *walk, struct iovec *piece)
{
    if (!walk->length)
        return false;
    if (__builtin_expect(walk->count == OFP_LAYOUT, 0))
        return ofp_iov_next_of_layout(walk, piece);
    for (; walk->count; walk->count--, walk->iov++) {
        uint64_t here = walk->iov->iov_len;

        if (walk->offset >= here) {
            walk->offset -= here;
            continue;
        }
        here -= walk->offset;
        piece->iov_base = (char *)walk->iov->iov_base + walk->offset;
        piece->iov_len = here < walk->length ? here : walk->length;
        walk->length -= piece->iov_len;
        walk->offset = 0;
        walk->count--;
        walk->iov++;
        return true;
    }
    return false;
}

/* Write the part's pieces into `pieces`, at most `room` entries. Returns the number of entries. */
static inline uint32_t ofp_iov_cut(struct iovec *pieces, uint32_t room, const struct iovec *iov, uint32_t count,
                                   uint64_t offset, uint64_t length)
{
    struct ofp_iov_walk walk = {iov, count, offset, length};
    uint32_t filled = 0;

    while (filled < room && ofp_iov_next(&walk, &pieces[filled]))
        filled++;
    return filled;
}

/*
 * Copy the part out of the pieces (gather), or into them (scatter). Return the bytes copied. Never inlined: the
 * callers' short paths copy a single piece themselves, and would otherwise save registers for this loop.
 */
static __attribute__((noinline, unused)) uint64_t ofp_iov_gather(void *to, const struct iovec *iov, uint32_t count,
                                                                 uint64_t offset, uint64_t length)
{
    struct ofp_iov_walk walk = {iov, count, offset, length};
    struct iovec piece;
    uint64_t copied = 0;

    if (__builtin_expect(count == OFP_LAYOUT, 0))
        return ofp_layout_gather(ofp_layout_of_iov(iov), offset, to, length);
    while (ofp_iov_next(&walk, &piece)) {
        ofp_memory_copy((char *)to + copied, piece.iov_base, piece.iov_len);
        copied += piece.iov_len;
    }
    return copied;
}

static __attribute__((noinline, unused)) uint64_t ofp_iov_scatter(const struct iovec *iov, uint32_t count,
                                                                  uint64_t offset, const void *from, uint64_t length)
{
    struct ofp_iov_walk walk = {iov, count, offset, length};
    struct iovec piece;
    uint64_t copied = 0;

    if (__builtin_expect(count == OFP_LAYOUT, 0))
        return ofp_layout_scatter(ofp_layout_of_iov(iov), offset, from, length);
    while (ofp_iov_next(&walk, &piece)) {
        ofp_memory_copy(piece.iov_base, (const char *)from + copied, piece.iov_len);
        copied += piece.iov_len;
    }
    return copied;
}

/*
 * The length of all pieces together. False: more than 64 bits can count, which invalid input from a peer or caller can
 * cause.
 */
static inline bool ofp_iov_length(const struct iovec *iov, uint32_t count, uint64_t *length)
{
    *length = 0;
    if (count == OFP_LAYOUT) {
        *length = ofp_layout_of_iov(iov)->length;
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (iov[i].iov_len > UINT64_MAX - *length)
            return false;
        *length += iov[i].iov_len;
    }
    return true;
}

#endif
