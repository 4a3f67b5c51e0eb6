/* SPDX-License-Identifier: BSD-3-Clause */
#include "ways.h"

#include <stdint.h>
#include <string.h>

#define SLICE ((size_t)256 << 10)

static bool have_always(void) { return true; }

static void copy_libc(void *to, const void *from, size_t length) { memcpy(to, from, length); }

/* glibc chooses its instructions by the length: on some processors it stops using rep movsb at the size of the L2. */
static void copy_slices(void *to, const void *from, size_t length)
{
    for (size_t offset = 0; offset < length; offset += SLICE)
        memcpy((char *)to + offset, (const char *)from + offset, length - offset < SLICE ? length - offset : SLICE);
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define LINE 64u
#define BLOCK 128u
/* Bit of prefetchw in ecx of leaf 0x80000001. */
#define PREFETCHW (1u << 8)

static bool have_avx2(void) { return __builtin_cpu_supports("avx2"); }

static bool have_avx512(void) { return __builtin_cpu_supports("avx512f"); }

static bool have_prefetchw(void)
{
    unsigned int eax, ebx, ecx, edx;

    return have_avx2() && __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && ecx & PREFETCHW;
}

static void copy_rep(void *to, const void *from, size_t length)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}

/* Copy up to the next multiple of a line in the target, and advance all three. */
static void copy_head(char **to, const char **from, size_t *length)
{
    size_t head = -(uintptr_t)*to % LINE;

    if (head > *length)
        head = *length;
    memcpy(*to, *from, head);
    *to += head;
    *from += head;
    *length -= head;
}

/* `ahead`: bytes between the load and the line that is prefetched; 0: nothing is prefetched. `own`: the target too. */
__attribute__((target("avx2,prfchw"), always_inline)) static inline void
copy_vectors(void *target, const void *source, size_t length, size_t ahead, bool own)
{
    char *to = target;
    const char *from = source;

    copy_head(&to, &from, &length);
    for (; length >= BLOCK; length -= BLOCK, to += BLOCK, from += BLOCK) {
        __m256i part[BLOCK / 32];

        if (ahead && length >= ahead + BLOCK) {
            for (size_t line = 0; line < BLOCK; line += LINE) {
                __builtin_prefetch(from + ahead + line, 0, 3);
                if (own)
                    __builtin_prefetch(to + ahead + line, 1, 3);
            }
        }
        for (size_t i = 0; i < BLOCK / 32; i++)
            part[i] = _mm256_loadu_si256((const __m256i *)(const void *)(from + 32 * i));
        for (size_t i = 0; i < BLOCK / 32; i++)
            _mm256_store_si256((__m256i *)(void *)(to + 32 * i), part[i]);
    }
    memcpy(to, from, length);
}

#define VECTOR_WAY(name, ahead, own)                                                                                   \
    __attribute__((target("avx2,prfchw"))) static void name(void *to, const void *from, size_t length)                 \
    {                                                                                                                  \
        copy_vectors(to, from, length, ahead, own);                                                                    \
    }
VECTOR_WAY(copy_avx2, 0, false)
VECTOR_WAY(copy_prefetch_512, 512, false)
VECTOR_WAY(copy_prefetch_2048, 2048, false)
VECTOR_WAY(copy_prefetch_8192, 8192, false)
VECTOR_WAY(copy_prefetchw_512, 512, true)
VECTOR_WAY(copy_prefetchw_2048, 2048, true)

__attribute__((target("avx512f"))) static void copy_avx512(void *target, const void *source, size_t length)
{
    char *to = target;
    const char *from = source;

    copy_head(&to, &from, &length);
    for (; length >= BLOCK; length -= BLOCK, to += BLOCK, from += BLOCK) {
        __m512i first = _mm512_loadu_si512(from), second = _mm512_loadu_si512(from + 64);

        _mm512_store_si512(to, first);
        _mm512_store_si512(to + 64, second);
    }
    memcpy(to, from, length);
}

/* The fence makes the bytes visible before the other thread is notified: these stores are not ordered with others. */
static void copy_sse2_nontemporal(void *target, const void *source, size_t length)
{
    char *to = target;
    const char *from = source;

    copy_head(&to, &from, &length);
    for (; length >= LINE; length -= LINE, to += LINE, from += LINE)
        for (size_t i = 0; i < LINE; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
    memcpy(to, from, length);
    _mm_sfence();
}

__attribute__((target("avx2"))) static void copy_avx2_nontemporal(void *target, const void *source, size_t length)
{
    char *to = target;
    const char *from = source;

    copy_head(&to, &from, &length);
    for (; length >= LINE; length -= LINE, to += LINE, from += LINE)
        for (size_t i = 0; i < LINE; i += 32)
            _mm256_stream_si256((__m256i *)(void *)(to + i),
                                _mm256_loadu_si256((const __m256i *)(const void *)(from + i)));
    memcpy(to, from, length);
    _mm_sfence();
}
#endif

const struct way ways[] = {
    {"memcpy", have_always, copy_libc},
    {"memcpy-256k", have_always, copy_slices},
#if defined(__x86_64__)
    {"rep-movsb", have_always, copy_rep},
    {"avx2", have_avx2, copy_avx2},
    {"prefetch-512", have_prefetchw, copy_prefetch_512},
    {"prefetch-2048", have_prefetchw, copy_prefetch_2048},
    {"prefetch-8192", have_prefetchw, copy_prefetch_8192},
    {"prefetchw-512", have_prefetchw, copy_prefetchw_512},
    {"prefetchw-2048", have_prefetchw, copy_prefetchw_2048},
    {"avx512", have_avx512, copy_avx512},
    {"sse2-nontemporal", have_always, copy_sse2_nontemporal},
    {"avx2-nontemporal", have_avx2, copy_avx2_nontemporal},
#endif
};

const int way_count = sizeof(ways) / sizeof(ways[0]);
