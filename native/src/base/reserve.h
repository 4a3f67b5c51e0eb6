/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of one size for moments that must not fail: whoever will want one promises it beforehand, while it can still be refused.
 * Always at least so many are free as are promised, and one more. Memory is returned at the end only. No locking of its own.
 */
#ifndef OFPI_RESERVE_H
#define OFPI_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ofipy/list.h"

struct ofpi_reserve {
    size_t object_size;
    struct ofp_list free, chunks; /* objects, each by the list node that it begins with; memory */
    uint64_t free_count, reserved;
};

/* `object_size`: a multiple of 8; an object begins with a struct ofp_list. */
void ofpi_reserve_open(struct ofpi_reserve *reserve, size_t object_size);
void ofpi_reserve_close(struct ofpi_reserve *reserve);
/* Promise `count` more objects: each can be taken once, until it is released. False: out of memory, nothing is promised. */
bool ofpi_reserve_acquire(struct ofpi_reserve *reserve, uint64_t count);
static inline void ofpi_reserve_release(struct ofpi_reserve *reserve, uint64_t count) { reserve->reserved -= count; }
/* Whether enough are free for what is promised and one more; out of memory, only what is promised can be kept. */
bool ofpi_reserve_grow(struct ofpi_reserve *reserve);
/* NULL: out of memory, beyond what was promised. */
void *ofpi_reserve_allocate(struct ofpi_reserve *reserve);
void ofpi_reserve_free(struct ofpi_reserve *reserve, void *object);

#endif
