/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of a domain's region table, version 3. Peers find in it which regions they may access directly, and where the regions
 * are. A sealed memfd that peers map for reading, created when the first region is published.
 *
 * The place of a region's entry follows from its key: that place, or one of the next few. If all of them are occupied, the
 * region has no entry, and peers request each access through the ring. `serial` is the entry's lock word: 0 while the entry is
 * free or changes, another number at every use. A visit to a region and its closing
 *
 *     visitor                                          owner, closing the region
 *     reads serial, then the entry
 *     writes serial to `visiting` of its own segment   writes 0 to serial
 *     reads serial again: the same?                    reads `visiting` of every peer: that serial?
 *       yes: moves the bytes, clears `visiting`          yes: waits, unless the peer is dead
 *       no: clears `visiting`, requests by the ring
 *
 * exclude each other: each side writes its own word before it reads the other's, so at least one of them notices the other
 * (tests/native/test_shm_visit_model.c).
 */
#ifndef SHM_TABLE_H
#define SHM_TABLE_H

#include "memory/arena.h"

#define SHM_TABLE_PROBES 8

/* Bit of shm_region_entry.access beside OFP_ACCESS_…: notify the owner of every access. */
#define SHM_ENTRY_EVENTS 0x80000000u

struct shm_region_entry {
    _Atomic uint64_t serial;
    _Atomic uint64_t key;
    _Atomic uint64_t address; /* in the owner's process */
    _Atomic uint64_t length;
    _Atomic uint64_t arena_offset;
    _Atomic uint32_t arena; /* 0: in none */
    _Atomic uint32_t access;
    _Atomic uint32_t id; /* the owner's */
    uint8_t pad[12];
};
_Static_assert(offsetof(struct shm_region_entry, access) == 44, "layout");
_Static_assert(offsetof(struct shm_region_entry, id) == 48, "layout");
_Static_assert(sizeof(struct shm_region_entry) == SHM_CACHE_LINE, "layout");

/* As the core's entries region_publish and region_withdraw. */
int shm_region_publish(struct ofp_domain *domain, struct ofp_region *region);
int shm_region_withdraw(struct ofp_domain *domain, struct ofp_region *region);
void shm_table_close(struct shm_domain *domain);
/* The table's descriptor; -1: there is no table. */
int shm_table_descriptor_of(const struct shm_domain *domain);
/* Copy the entry with the key. False: there is none. */
bool shm_table_find(const struct shm_region_entry *table, uint64_t key, struct shm_target *target);
/* The region table of a link's peer; NULL: not mapped, or not yet. */
const struct shm_region_entry *shm_table_resolve(struct shm_link *link);

/* Start a visit. False: the entry has changed, or its owner closes; no visit has begun. */
bool shm_visit_start(struct shm_link *link, const struct shm_target *target);
/* End a visit. False: the entry has changed, so the moved bytes may be invalid. */
bool shm_visit_end(struct shm_link *link, const struct shm_target *target);
/* Wait, at most until `deadline`, until no peer visits a region of the endpoint's domain. */
void shm_visitors_wait(struct shm_endpoint *endpoint, uint64_t deadline);

#endif
