/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects by ids of 32 bits that programs hold on to: an index in the low 20 bits, above it a generation, so that an id
 * whose object is gone names nothing, for ever. Slots that were never used come first while there is room for them, then
 * the one freed longest ago. A slot that has been through all its generations is retired. No locking of its own.
 */
#ifndef OFPI_IDS_H
#define OFPI_IDS_H

#include "ofipy/types.h"

#define OFPI_ID_INDEX_BITS 20
#define OFPI_ID_SLOTS (1u << OFPI_ID_INDEX_BITS)
/* Of 4096 one is left out: OFP_PEER_ANY and OFP_PEER_UNKNOWN are no ids. */
#define OFPI_ID_GENERATIONS 4095u
struct ofpi_id_slot {
    void *object; /* NULL: free, or retired */
    uint32_t id;
    uint32_t next_free;
};
struct ofpi_ids {
    struct ofpi_id_slot *slots;
    uint32_t capacity, used, live; /* slots; those that ever were in use; those that are */
    uint32_t free_first, free_last;
    uint32_t first_generation; /* of every slot */
};
/* No id has a lower index than the first; 0 is an id when both are 0. */
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
