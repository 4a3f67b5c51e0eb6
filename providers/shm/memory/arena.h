/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers can map: our arenas and those of peers. */
#ifndef SHM_ARENA_H
#define SHM_ARENA_H

#include "shm.h"

/* Number that names, instead of an arena, the owner's region table (table.h): this size, read-only. */
#define SHM_TABLE_NUMBER 0xffffffffu
#define SHM_TABLE_SHIFT 11
#define SHM_TABLE_SIZE ((UINT64_C(1) << SHM_TABLE_SHIFT) * SHM_CACHE_LINE)

int shm_arena_allocate(struct ofp_domain *domain, struct ofp_region *region, char *text, size_t text_size);
void shm_arena_free(struct ofp_domain *domain, struct ofp_region *region);
void shm_arenas_close(struct shm_domain *domain);
/* The number of the arena that contains this memory, and the offset in it; 0: none. */
uint32_t shm_arena_find_memory(const struct shm_domain *domain, const void *memory, uint64_t length, uint64_t *offset);
/* Descriptor of an own arena; -1: none has that number. */
int shm_arena_find_descriptor(const struct shm_domain *domain, uint32_t number);
/*
 * Resolve a range of a peer's arena, or of its region table, to memory of this process. NULL: not mapped yet (then it
 * is requested), or the range is outside.
 */
char *shm_foreign_arena_resolve(struct shm_link *link, uint32_t number, uint64_t offset, uint64_t length);
/* Whether the arena is requested and the answer is outstanding. */
bool shm_foreign_arena_is_requested(const struct shm_link *link, uint32_t number);
/* The answer to a request: a descriptor (the caller still owns it), or -1. */
void shm_foreign_arena_arrived(struct shm_process *process, uint32_t number, int fd);
void shm_foreign_arenas_close(struct shm_process *process);

#endif
