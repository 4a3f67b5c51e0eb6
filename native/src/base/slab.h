/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of one size without ids, allocated and freed in a few instructions. Memory is returned at the end only. The
 * object that was freed last is allocated next, while it is in the cache. Objects are not cleared. The caller locks.
 * With `backing`, each object has one object reserved there.
 */
#ifndef OFPI_SLAB_H
#define OFPI_SLAB_H

#include <stddef.h>
#include <stdint.h>

/* Let the address sanitizer detect uses of freed objects. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define OFPI_SLAB_WATCHED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define OFPI_SLAB_WATCHED
#endif
#ifdef OFPI_SLAB_WATCHED
#include <sanitizer/asan_interface.h>
#define ofpi_slab_forbid(pointer, size) __asan_poison_memory_region((pointer), (size))
#define ofpi_slab_allow(pointer, size) __asan_unpoison_memory_region((pointer), (size))
#else
#define ofpi_slab_forbid(pointer, size) ((void)(pointer))
#define ofpi_slab_allow(pointer, size) ((void)(pointer))
#endif

struct ofpi_reserve;

struct ofpi_slab {
    size_t object_size;             /* a multiple of 8; of 64 to align objects to cache lines */
    struct ofpi_slab_object *freed; /* freed objects */
    char *fresh, *fresh_end;        /* memory of the newest chunk that was never allocated */
    struct ofpi_slab_chunk *chunks;
    struct ofpi_reserve *backing; /* NULL: none. Must outlive the slab; set before the first allocation */
    uint32_t chunk_objects;       /* in the next chunk */
    uint32_t reserved;            /* objects of all chunks, in `backing` */
};

struct ofpi_slab_object {
    struct ofpi_slab_object *next;
};

void ofpi_slab_open(struct ofpi_slab *slab, size_t object_size);
/* Also frees objects that are still allocated. */
void ofpi_slab_close(struct ofpi_slab *slab);
void *ofpi_slab_grow(struct ofpi_slab *slab);

/* NULL: out of memory. */
static inline void *ofpi_slab_allocate(struct ofpi_slab *slab)
{
    struct ofpi_slab_object *object = slab->freed;
    char *fresh = slab->fresh;

    if (object) {
        ofpi_slab_allow(object, slab->object_size);
        slab->freed = object->next;
        return object;
    }
    if (fresh == slab->fresh_end)
        return ofpi_slab_grow(slab);
    slab->fresh += slab->object_size;
    return fresh;
}

static inline void ofpi_slab_free(struct ofpi_slab *slab, void *pointer)
{
    struct ofpi_slab_object *object = pointer;

    object->next = slab->freed;
    slab->freed = object;
    ofpi_slab_forbid(object, slab->object_size);
}

#endif
