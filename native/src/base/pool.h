/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool of objects of one size, with ids that may come from peers. An id consists of index and generation, so that a
 * stale or invented id is detected; 0 is never an id. The pool grows by chunks, and objects never move; it allocates
 * nothing once it is large enough. New objects are zeroed. The caller locks. With `backing`, each object has one object
 * reserved there.
 */
#ifndef OFPI_POOL_H
#define OFPI_POOL_H

#include "ofipy/types.h"

struct ofpi_reserve;

struct ofpi_pool {
    size_t object_size;
    uint32_t chunk_count, chunk_capacity, free_head, live;
    char **chunks;
    struct ofpi_pool_slot *slots; /* generation and free link of every object */
    struct ofpi_reserve *backing; /* NULL: none. Must outlive the pool; set before the first allocation */
};
void ofpi_pool_init(struct ofpi_pool *pool, size_t object_size);
void ofpi_pool_close(struct ofpi_pool *pool);
void *ofpi_pool_allocate(struct ofpi_pool *pool, uint64_t *id); /* NULL: out of memory */
void ofpi_pool_free(struct ofpi_pool *pool, uint64_t id);
void *ofpi_pool_find(const struct ofpi_pool *pool, uint64_t id); /* NULL: not a live object */
uint32_t ofpi_pool_count_live(const struct ofpi_pool *pool);
/* The first live object at index >= *cursor, or NULL; *cursor moves behind it. */
void *ofpi_pool_find_next(const struct ofpi_pool *pool, uint32_t *cursor);

#endif
