/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header of a bounce buffer lies behind its bytes, so that the bytes begin at a page and the transport can register
 * them. The core owns the buffer and reuses it, so that a transport which registers memory does so once for each
 * buffer.
 */
#include "peer/bounce.h"

#include <sys/mman.h>

#include "base/check.h"
#include "memory/owned.h"

#define DEFAULT_BOUNCE_SIZE (64ull << 20)
#define SPARE_LIMIT 8

struct ofpi_bounce {
    struct ofpi_bounce *next;   /* the next spare buffer */
    struct ofpi_region *region; /* the buffer's owned region; NULL: the transport caches no registrations */
};

void ofpi_bounce_open(struct ofpi_endpoint *endpoint)
{
    struct ofp_endpoint *base = &endpoint->base;

    if (!base->bounce_size)
        base->bounce_size = DEFAULT_BOUNCE_SIZE;
    if (base->bounce_size > base->info->max_msg_size)
        base->bounce_size = base->info->max_msg_size;
}

static uint64_t compute_header_offset(uint64_t size)
{
    return (size + _Alignof(struct ofpi_bounce) - 1) & ~(uint64_t)(_Alignof(struct ofpi_bounce) - 1);
}

static struct ofpi_bounce *header_of_bounce(void *memory, uint64_t size)
{
    return (struct ofpi_bounce *)(void *)((char *)memory + compute_header_offset(size));
}

static void *map_bounce(struct ofpi_endpoint *endpoint, uint64_t size)
{
    void *memory = mmap(NULL, compute_header_offset(size) + sizeof(struct ofpi_bounce), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int error;

    if (memory == MAP_FAILED)
        return NULL;
    header_of_bounce(memory, size)->region = ofpi_region_register_owned(endpoint->domain, memory, size, &error);
    return memory;
}

static void unmap_bounce(struct ofpi_endpoint *endpoint, void *memory, uint64_t size)
{
    struct ofpi_region *region = header_of_bounce(memory, size)->region;

    if (region)
        ofpi_region_deregister_owned(endpoint->domain, region);
    munmap(memory, compute_header_offset(size) + sizeof(struct ofpi_bounce));
}

void *ofpi_bounce_allocate(struct ofpi_endpoint *endpoint, uint64_t size)
{
    uint64_t usual = endpoint->base.bounce_size;
    struct ofpi_bounce *spare = size == usual ? endpoint->spare_bounces : NULL;

    if (!spare)
        return map_bounce(endpoint, size);
    endpoint->spare_bounces = spare->next;
    endpoint->spare_bounce_count--;
    return (char *)spare - compute_header_offset(size);
}

struct ofp_region *ofpi_region_of_bounce(void *memory, uint64_t size)
{
    struct ofpi_region *region = header_of_bounce(memory, size)->region;

    return region ? &region->base : NULL;
}

void ofpi_bounce_free(struct ofpi_endpoint *endpoint, void *memory, uint64_t size)
{
    struct ofpi_bounce *header = header_of_bounce(memory, size);

    /* All spare buffers have the usual size, so that any of them fits the next receive. */
    if (size != endpoint->base.bounce_size || endpoint->spare_bounce_count == SPARE_LIMIT) {
        unmap_bounce(endpoint, memory, size);
        return;
    }
    OFPI_CHECK(!endpoint->spare_bounces == !endpoint->spare_bounce_count);
    header->next = endpoint->spare_bounces;
    endpoint->spare_bounces = header;
    endpoint->spare_bounce_count++;
}

void ofpi_bounce_close(struct ofpi_endpoint *endpoint)
{
    while (endpoint->spare_bounces)
        unmap_bounce(endpoint, ofpi_bounce_allocate(endpoint, endpoint->base.bounce_size), endpoint->base.bounce_size);
}
