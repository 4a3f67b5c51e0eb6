/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers can map, ours and theirs. */
#ifndef SHM_ARENA_H
#define SHM_ARENA_H

#include "shm.h"

/* Instead of an arena: the owner's table of regions (table.h), which has this size and is for reading. */
#define SHM_TABLE_NUMBER 0xffffffffu
#define SHM_TABLE_SHIFT 11
#define SHM_TABLE_SIZE ((UINT64_C(1) << SHM_TABLE_SHIFT) * SHM_CACHE_LINE)

int shm_arena_allocate(struct ofp_domain *domain, struct ofp_region *region, char *text, size_t text_size);
void shm_arena_free(struct ofp_domain *domain, struct ofp_region *region);
void shm_arenas_close(struct shm_domain *domain);
/* Where in which arena this memory lies; arena 0: in none. */
uint32_t shm_arena_find_memory(const struct shm_domain *domain, const void *memory, uint64_t length, uint64_t *offset);
/* Descriptor of an arena of ours; -1: none of that number. */
int shm_arena_find_descriptor(const struct shm_domain *domain, uint32_t number);
/*
 * Memory of a peer's arena, or of its region table, checked against what is mapped. NULL: it is not mapped yet (and asked
 * for), or there is no such place in it.
 */
char *shm_foreign_arena_resolve(struct shm_link *link, uint32_t number, uint64_t offset, uint64_t length);
/* Whether the peer has been asked for it, and may yet answer. */
bool shm_foreign_arena_is_requested(const struct shm_link *link, uint32_t number);
/* The answer to our question: a descriptor (it stays the caller's), or -1. */
void shm_foreign_arena_arrived(struct shm_process *process, uint32_t number, int fd);
void shm_foreign_arenas_close(struct shm_process *process);

#endif
