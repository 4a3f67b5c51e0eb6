/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slab.h"

#include <stdlib.h>

#include "base/reserve.h"

#define CACHE_LINE 64
#define FIRST_CHUNK_OBJECTS 32
#define LARGEST_CHUNK_OBJECTS 2048

struct ofpi_slab_chunk {
    _Alignas(CACHE_LINE) struct ofpi_slab_chunk *next;
};

void ofpi_slab_open(struct ofpi_slab *slab, size_t object_size)
{
    *slab = (struct ofpi_slab){.object_size = object_size, .chunk_objects = FIRST_CHUNK_OBJECTS};
}

void ofpi_slab_close(struct ofpi_slab *slab)
{
    struct ofpi_slab_chunk *chunk = slab->chunks, *next;

    for (; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    if (slab->backing)
        ofpi_reserve_release(slab->backing, slab->reserved);
    ofpi_slab_open(slab, slab->object_size);
}

/* Allocate a chunk and return its first object. */
void *ofpi_slab_grow(struct ofpi_slab *slab)
{
    size_t size =
        (size_t)slab->chunk_objects * slab->object_size; /* a multiple of the cache line: 32 objects of 8 n bytes */
    struct ofpi_slab_chunk *chunk = aligned_alloc(CACHE_LINE, sizeof(*chunk) + size);

    if (!chunk)
        return NULL;
    if (slab->backing && !ofpi_reserve_acquire(slab->backing, slab->chunk_objects)) {
        free(chunk);
        return NULL;
    }
    slab->reserved += slab->chunk_objects;
    chunk->next = slab->chunks;
    slab->chunks = chunk;
    slab->fresh = (char *)(chunk + 1) + slab->object_size;
    slab->fresh_end = (char *)(chunk + 1) + size;
    if (slab->chunk_objects < LARGEST_CHUNK_OBJECTS)
        slab->chunk_objects *= 2;
    return chunk + 1;
}
