/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy into memory that another processor core reads next. Ordinary stores leave the target modified in this core's
 * cache, and the reader has to fetch it from there line by line. So large copies bypass the cache. Short copies use
 * ordinary stores: the reader gets them from the cache sooner than from memory. All other copies of user memory use
 * ofp_memory_copy.
 */
#include "base/copy.h"

#include "ofipy/iov.h"

/* Bytes from which on nontemporal stores are faster; measured, docs/reference/performance.md. */
#define NONTEMPORAL_FROM (UINT64_C(128) << 10)

#if defined(__x86_64__)
#include <emmintrin.h>

#define BLOCK 64u

void shm_copy_nontemporal(void *to, const void *from, uint64_t length)
{
    const char *source = from;
    char *target = to;
    uint64_t head = -(uintptr_t)target % BLOCK;

    if (length < NONTEMPORAL_FROM) {
        ofp_memory_copy(to, from, length);
        return;
    }
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
void shm_copy_nontemporal(void *to, const void *from, uint64_t length) { ofp_memory_copy(to, from, length); }
#endif
