/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/reserve.h"

#include <stdlib.h>

#define CHUNK_OBJECTS 64

struct reserve_chunk {
    struct ofp_list node;
    char objects[];
};

void ofpi_reserve_open(struct ofpi_reserve *reserve, size_t object_size)
{
    *reserve = (struct ofpi_reserve){.object_size = object_size};
    ofp_list_init(&reserve->free);
    ofp_list_init(&reserve->chunks);
}

void ofpi_reserve_close(struct ofpi_reserve *reserve)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&reserve->chunks)))
        free(OFP_CONTAINER_OF(node, struct reserve_chunk, node));
}

static bool add_chunk(struct ofpi_reserve *reserve)
{
    struct reserve_chunk *chunk = malloc(sizeof(*chunk) + CHUNK_OBJECTS * reserve->object_size);

    if (!chunk)
        return false;
    ofp_list_append(&reserve->chunks, &chunk->node);
    for (int i = 0; i < CHUNK_OBJECTS; i++)
        ofpi_reserve_free(reserve, chunk->objects + (size_t)i * reserve->object_size);
    return true;
}

bool ofpi_reserve_grow(struct ofpi_reserve *reserve)
{
    while (reserve->free_count <= reserve->reserved)
        if (!add_chunk(reserve))
            return false;
    return true;
}

bool ofpi_reserve_acquire(struct ofpi_reserve *reserve, uint64_t count)
{
    reserve->reserved += count;
    if (ofpi_reserve_grow(reserve))
        return true;
    reserve->reserved -= count;
    return false;
}

void *ofpi_reserve_allocate(struct ofpi_reserve *reserve)
{
    if (ofp_list_empty(&reserve->free) && !add_chunk(reserve))
        return NULL;
    reserve->free_count--;
    return ofp_list_pop(&reserve->free);
}

void ofpi_reserve_free(struct ofpi_reserve *reserve, void *object)
{
    struct ofp_list *node = object;

    *node = (struct ofp_list){0};
    ofp_list_prepend(&reserve->free, node);
    reserve->free_count++;
}
