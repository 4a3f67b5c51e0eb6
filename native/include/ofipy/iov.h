/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory in several pieces, and the copy into and out of user memory.
 *
 * A part is [offset, offset + length) of the bytes of all pieces together. What of it lies behind the last piece is not there:
 * nothing is done for it, and the result says how much was. No piece of a part is empty.
 */
#ifndef OFIPY_IOV_H
#define OFIPY_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

/* The rest of the pieces, however long. */
#define OFP_IOV_ALL UINT64_MAX

/*
 * Every copy between user memory and other memory is this one, so that memory which the processor cannot copy is a matter of
 * this file. Exceptions say why where they stand. Of a constant length it costs a load and a store. With length 0 the
 * addresses mean nothing.
 */
static inline void ofp_memory_copy(void *to, const void *from, size_t length)
{
    if (length)
        memcpy(to, from, length);
}

/* The remainder of a walk over a part. */
struct ofp_iov_walk {
    const struct iovec *iov;
    uint32_t count;
    uint64_t offset, length;
};

/* The next piece of the part. False: there is none; `length` of the walk says how much is missing. */
static inline bool ofp_iov_next(struct ofp_iov_walk *walk, struct iovec *piece)
{
    if (!walk->length)
        return false;
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

/* The part as a list of its own, as far as there is `room` for it. Returns its entries. */
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
 * Copy the part out of the pieces, or into them. Return the bytes copied. Never inlined: short paths copy their one piece
 * themselves, and would save registers for the loop here.
 */
static __attribute__((noinline, unused)) uint64_t ofp_iov_gather(void *to, const struct iovec *iov, uint32_t count,
                                                                 uint64_t offset, uint64_t length)
{
    struct ofp_iov_walk walk = {iov, count, offset, length};
    struct iovec piece;
    uint64_t copied = 0;

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

    while (ofp_iov_next(&walk, &piece)) {
        ofp_memory_copy(piece.iov_base, (const char *)from + copied, piece.iov_len);
        copied += piece.iov_len;
    }
    return copied;
}

/* The bytes of all pieces together. False: more than 64 bits can count, as only pieces can be that somebody else wrote. */
static inline bool ofp_iov_length(const struct iovec *iov, uint32_t count, uint64_t *length)
{
    *length = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (iov[i].iov_len > UINT64_MAX - *length)
            return false;
        *length += iov[i].iov_len;
    }
    return true;
}

#endif
