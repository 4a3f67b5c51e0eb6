/* SPDX-License-Identifier: BSD-3-Clause */
/* Resident memory while many peers come and go. */
#ifndef RESIDENT_MEMORY_H
#define RESIDENT_MEMORY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RESIDENT_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RESIDENT_SANITIZED 1
#endif
#ifndef RESIDENT_SANITIZED
#define RESIDENT_SANITIZED 0
#endif

/* By how much memory may grow with the last tenth: 1 MiB, or less than those take that are not freed. */
#define RESIDENT_LIMIT (1l << 20)
#define RESIDENT_EACH 512

static inline long resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long size = 0, pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &size, &pages), 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* How many peers: as the environment says, which is for the full profile, or so many. */
static inline uint32_t resident_count(const char *name, uint32_t few)
{
    const char *text = getenv(name);

    return text ? (uint32_t)strtoul(text, NULL, 10) : few;
}

/*
 * Let `count` peers come and go. Memory may grow while the first ones do, and with the last tenth within the limit. A
 * sanitizer keeps what is freed, so its run checks only that nothing is freed twice or used afterwards.
 */
static inline void resident_check(uint32_t count, void (*come_and_go)(uint32_t number, void *data), void *data)
{
    uint32_t last = count - count / 10;
    long before, limit = (long)(count / 10) * RESIDENT_EACH;

    for (uint32_t i = 0; i < last; i++)
        come_and_go(i, data);
    before = resident_bytes();
    for (uint32_t i = last; i < count; i++)
        come_and_go(i, data);
    if (!RESIDENT_SANITIZED)
        assert_true(resident_bytes() - before <= (limit < RESIDENT_LIMIT ? limit : RESIDENT_LIMIT));
}

#endif
