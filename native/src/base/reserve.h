/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of one size for steps that must not fail. A caller reserves an object in advance, at a time when it can still
 * handle an error. There are always at least as many free objects as reserved ones, and one more. Memory is freed at
 * the end only. The caller locks.
 */
#ifndef OFPI_RESERVE_H
#define OFPI_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ofipy/list.h"

struct ofpi_reserve {
    size_t object_size;
    struct ofp_list free, chunks; /* free objects, by the list node at their start; allocated memory */
    uint64_t free_count, reserved;
};

/* `object_size`: a multiple of 8; an object begins with a struct ofp_list. */
void ofpi_reserve_open(struct ofpi_reserve *reserve, size_t object_size);
void ofpi_reserve_close(struct ofpi_reserve *reserve);
/*
 * Reserve `count` more objects: each can be allocated once, until it is released. False: out of memory, nothing is
 * reserved.
 */
bool ofpi_reserve_acquire(struct ofpi_reserve *reserve, uint64_t count);
static inline void ofpi_reserve_release(struct ofpi_reserve *reserve, uint64_t count) { reserve->reserved -= count; }
/*
 * Allocate memory until there are more free objects than reserved ones. False: out of memory; only the reserved objects
 * are available.
 */
bool ofpi_reserve_grow(struct ofpi_reserve *reserve);
/* NULL: out of memory, and no reserved object is left. */
void *ofpi_reserve_allocate(struct ofpi_reserve *reserve);
void ofpi_reserve_free(struct ofpi_reserve *reserve, void *object);

#endif
