/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying into memory that another core reads next. Ordinary stores leave the target in our cache, changed, where the
 * reader has to fetch it line by line from; large copies go past the cache. Short ones do not: what they leave there,
 * the reader gets sooner than from memory. So this is not ofp_memory_copy, as all other copies of user memory are.
 */
#include "base/copy.h"

#include "ofipy/iov.h"

/* From here on; measured, docs/reference/performance.md. */
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
    /* Such stores are not ordered with others: whoever is told of them afterwards shall see them. */
    _mm_sfence();
}
#else
void shm_copy_nontemporal(void *to, const void *from, uint64_t length) { ofp_memory_copy(to, from, length); }
#endif
