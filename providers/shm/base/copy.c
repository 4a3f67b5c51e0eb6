/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy into memory that another processor core uses next. Ordinary stores leave the target modified in this core's
 * cache, and first fetch each line from wherever it is. Nontemporal stores do neither. rma/store.c chooses between
 * both. All other copies of user memory use ofp_memory_copy.
 */
#include "base/copy.h"

#include "ofipy/iov.h"

#if SHM_HAS_NONTEMPORAL
#include <emmintrin.h>

#define BLOCK 64u

static void copy_nontemporal(void *to, const void *from, uint64_t length)
{
    const char *source = from;
    char *target = to;
    uint64_t head = -(uintptr_t)target % BLOCK;

    if (head > length)
        head = length;
    ofp_memory_copy(target, source, head);
    target += head;
    source += head;
    length -= head;
    for (; length >= BLOCK; length -= BLOCK, target += BLOCK, source += BLOCK)
        for (uint32_t i = 0; i < BLOCK; i += 16)
            _mm_stream_si128((__m128i *)(void *)(target + i),
                             _mm_loadu_si128((const __m128i *)(const void *)(source + i)));
    ofp_memory_copy(target, source, length);
    /* Nontemporal stores are not ordered with other stores. The fence makes them visible before a peer is notified. */
    _mm_sfence();
}
#else
static void copy_nontemporal(void *to, const void *from, uint64_t length) { ofp_memory_copy(to, from, length); }
#endif

void shm_pieces_copy(struct iovec *to, struct iovec *from, uint64_t length, bool nontemporal)
{
    while (length) {
        uint64_t part = to->iov_len < from->iov_len ? to->iov_len : from->iov_len;

        if (!nontemporal && part > SHM_COPY_SLICE)
            part = SHM_COPY_SLICE;
        if (nontemporal)
            copy_nontemporal(to->iov_base, from->iov_base, part);
        else
            ofp_memory_copy(to->iov_base, from->iov_base, part);
        length -= part;
        to->iov_base = (char *)to->iov_base + part;
        from->iov_base = (char *)from->iov_base + part;
        to->iov_len -= part;
        from->iov_len -= part;
        to += !to->iov_len;
        from += !from->iov_len;
    }
}
