/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A free slot stores its next id, and no object. Generations start at any number and wrap around. When they reach the
 * first number again, the slot is retired, so that no id is ever assigned twice.
 */
#include "base/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ofipy/types.h"

#define NO_SLOT UINT32_MAX

void ofpi_ids_init(struct ofpi_ids *ids, uint32_t first_index, uint32_t first_generation)
{
    *ids = (struct ofpi_ids){.used = first_index,
                             .first_generation = first_generation % OFPI_ID_GENERATIONS,
                             .free_first = NO_SLOT,
                             .free_last = NO_SLOT};
}

void ofpi_ids_close(struct ofpi_ids *ids) { free(ids->slots); }

static int grow_id_slots(struct ofpi_ids *ids)
{
    uint32_t capacity = ids->capacity ? ids->capacity * 2 : 16;
    struct ofpi_id_slot *slots;

    if (capacity > OFPI_ID_SLOTS)
        return -OFP_EEXHAUSTED;
    slots = realloc(ids->slots, capacity * sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    memset(slots + ids->capacity, 0, (capacity - ids->capacity) * sizeof(*slots));
    for (uint32_t index = ids->capacity; index < capacity; index++)
        slots[index].id = ids->first_generation << OFPI_ID_INDEX_BITS | index;
    ids->slots = slots;
    ids->capacity = capacity;
    return 0;
}

static uint32_t pop_free_slot(struct ofpi_ids *ids)
{
    uint32_t index = ids->free_first;

    ids->free_first = ids->slots[index].next_free;
    if (ids->free_first == NO_SLOT)
        ids->free_last = NO_SLOT;
    return index;
}

static void append_free_slot(struct ofpi_ids *ids, uint32_t index)
{
    ids->slots[index].next_free = NO_SLOT;
    if (ids->free_last == NO_SLOT)
        ids->free_first = index;
    else
        ids->slots[ids->free_last].next_free = index;
    ids->free_last = index;
}

int ofpi_ids_add(struct ofpi_ids *ids, void *object, uint32_t *id)
{
    bool reuse = ids->used >= ids->capacity && ids->free_first != NO_SLOT;
    int result = !reuse && ids->used >= ids->capacity ? grow_id_slots(ids) : 0;
    struct ofpi_id_slot *slot;

    if (result)
        return result;
    slot = &ids->slots[reuse ? pop_free_slot(ids) : ids->used++];
    slot->object = object;
    ids->live++;
    *id = slot->id;
    return 0;
}

void ofpi_ids_remove(struct ofpi_ids *ids, uint32_t id)
{
    uint32_t index = ofpi_index_of_id(id);
    uint32_t generation = ((id >> OFPI_ID_INDEX_BITS) + 1) % OFPI_ID_GENERATIONS;

    ids->slots[index].object = NULL;
    ids->slots[index].id = generation << OFPI_ID_INDEX_BITS | index;
    ids->live--;
    if (generation != ids->first_generation)
        append_free_slot(ids, index);
}

void *ofpi_ids_find_next(const struct ofpi_ids *ids, uint32_t *cursor)
{
    uint32_t end = ids->used < ids->capacity ? ids->used : ids->capacity;

    while (*cursor < end) {
        void *object = ids->slots[(*cursor)++].object;

        if (object)
            return object;
    }
    return NULL;
}
