/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects by 32-bit ids that programs store: an index in the low 20 bits, and a generation above it. When an object is
 * removed, its id becomes invalid for ever. Slots that were never used are assigned first; after them, the slot that
 * was freed longest ago. A slot that has used all its generations is retired. The caller locks.
 */
#ifndef OFPI_IDS_H
#define OFPI_IDS_H

#include "ofipy/types.h"

#define OFPI_ID_INDEX_BITS 20
#define OFPI_ID_SLOTS (1u << OFPI_ID_INDEX_BITS)
/* One of 4096 is not used, so that OFP_PEER_ANY and OFP_PEER_UNKNOWN are never ids. */
#define OFPI_ID_GENERATIONS 4095u
struct ofpi_id_slot {
    void *object; /* NULL: free, or retired */
    uint32_t id;
    uint32_t next_free;
};
struct ofpi_ids {
    struct ofpi_id_slot *slots;
    uint32_t capacity, used, live; /* numbers of slots; of those ever used; of those in use */
    uint32_t free_first, free_last;
    uint32_t first_generation; /* of every slot */
};
/* Ids start at index `first_index`. If both arguments are 0, 0 is a valid id. */
void ofpi_ids_init(struct ofpi_ids *ids, uint32_t first_index, uint32_t first_generation);
void ofpi_ids_close(struct ofpi_ids *ids);
/* -ENOMEM; -OFP_EEXHAUSTED: every slot is in use or retired. */
int ofpi_ids_add(struct ofpi_ids *ids, void *object, uint32_t *id);
void ofpi_ids_remove(struct ofpi_ids *ids, uint32_t id); /* an id in use */
/* The first object at a slot >= *cursor, or NULL; *cursor moves behind it. */
void *ofpi_ids_find_next(const struct ofpi_ids *ids, uint32_t *cursor);
static inline uint32_t ofpi_index_of_id(uint32_t id) { return id & (OFPI_ID_SLOTS - 1); }
/* NULL: not an id in use. */
static inline void *ofpi_ids_find(const struct ofpi_ids *ids, uint32_t id)
{
    uint32_t index = ofpi_index_of_id(id);

    return index < ids->capacity && ids->slots[index].id == id ? ids->slots[index].object : NULL;
}

#endif
