/* SPDX-License-Identifier: BSD-3-Clause */
/* An id is generation << 32 | index + 1: never 0, and valid until the object is freed. */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/reserve.h"
#include "ofipy/types.h"

#define CHUNK_OBJECTS 64
#define NO_SLOT UINT32_MAX
#define LIVE (UINT32_MAX - 1)

struct ofpi_pool_slot {
    uint32_t generation;
    uint32_t next_free; /* LIVE while the object is allocated */
};

void ofpi_pool_init(struct ofpi_pool *pool, size_t object_size)
{
    memset(pool, 0, sizeof(*pool));
    pool->object_size = (object_size + 15) & ~(size_t)15;
    pool->free_head = NO_SLOT;
}

void ofpi_pool_close(struct ofpi_pool *pool)
{
    for (uint32_t i = 0; i < pool->chunk_count; i++)
        free(pool->chunks[i]);
    free(pool->chunks);
    free(pool->slots);
    if (pool->backing)
        ofpi_reserve_release(pool->backing, (uint64_t)pool->chunk_count * CHUNK_OBJECTS);
    memset(pool, 0, sizeof(*pool));
}

static char *object_of_slot(const struct ofpi_pool *pool, uint32_t index)
{
    return pool->chunks[index / CHUNK_OBJECTS] + (index % CHUNK_OBJECTS) * pool->object_size;
}

static bool grow_pool(struct ofpi_pool *pool)
{
    uint32_t first = pool->chunk_count * CHUNK_OBJECTS;
    struct ofpi_pool_slot *slots;

    if (pool->chunk_count == pool->chunk_capacity) {
        uint32_t capacity = pool->chunk_capacity ? pool->chunk_capacity * 2 : 4;
        char **chunks = realloc(pool->chunks, capacity * sizeof(*chunks));

        if (!chunks)
            return false;
        pool->chunks = chunks;
        slots = realloc(pool->slots, (size_t)capacity * CHUNK_OBJECTS * sizeof(*slots));
        if (!slots)
            return false;
        pool->slots = slots;
        pool->chunk_capacity = capacity;
    }
    pool->chunks[pool->chunk_count] = calloc(CHUNK_OBJECTS, pool->object_size);
    if (!pool->chunks[pool->chunk_count])
        return false;
    if (pool->backing && !ofpi_reserve_acquire(pool->backing, CHUNK_OBJECTS)) {
        free(pool->chunks[pool->chunk_count]);
        return false;
    }
    pool->chunk_count++;
    for (uint32_t i = CHUNK_OBJECTS; i-- > 0;) {
        pool->slots[first + i] = (struct ofpi_pool_slot){.next_free = pool->free_head};
        pool->free_head = first + i;
    }
    return true;
}

void *ofpi_pool_allocate(struct ofpi_pool *pool, uint64_t *id)
{
    struct ofpi_pool_slot *slot;
    uint32_t index;

    if (pool->free_head == NO_SLOT && !grow_pool(pool))
        return NULL;
    index = pool->free_head;
    slot = &pool->slots[index];
    pool->free_head = slot->next_free;
    slot->next_free = LIVE;
    slot->generation++;
    pool->live++;
    *id = (uint64_t)slot->generation << 32 | (index + 1);
    return memset(object_of_slot(pool, index), 0, pool->object_size);
}

void *ofpi_pool_find(const struct ofpi_pool *pool, uint64_t id)
{
    uint32_t index = (uint32_t)id - 1;

    if (index >= pool->chunk_count * CHUNK_OBJECTS || pool->slots[index].next_free != LIVE ||
        pool->slots[index].generation != id >> 32)
        return NULL;
    return object_of_slot(pool, index);
}

void ofpi_pool_free(struct ofpi_pool *pool, uint64_t id)
{
    uint32_t index = (uint32_t)id - 1;

    if (!ofpi_pool_find(pool, id))
        return;
    pool->slots[index].next_free = pool->free_head;
    pool->free_head = index;
    pool->live--;
}

uint32_t ofpi_pool_count_live(const struct ofpi_pool *pool) { return pool->live; }

void *ofpi_pool_find_next(const struct ofpi_pool *pool, uint32_t *cursor)
{
    while (*cursor < pool->chunk_count * CHUNK_OBJECTS) {
        uint32_t index = (*cursor)++;

        if (pool->slots[index].next_free == LIVE)
            return object_of_slot(pool, index);
    }
    return NULL;
}
