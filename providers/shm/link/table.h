/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of a domain's region table, version 3: where peers find out by themselves what they may reach, and where it lies. A
 * sealed memfd that peers map for reading, made when the first region is published.
 *
 * A region's entry stands at the place that follows from its key, or at one of the next few; where all of them are taken the
 * region has none, and peers ask for each access by the ring. `serial` is the entry's word: 0 while it is free or changing,
 * another number at every use. Who reaches into a region
 *
 *     visitor                                          owner, closing the region
 *     reads serial, then the entry
 *     writes serial to `visiting` of its own segment   writes 0 to serial
 *     reads serial again: the same?                    reads `visiting` of every peer: that serial?
 *       yes: moves the bytes, clears `visiting`          yes: waits, unless the peer is dead
 *       no: clears `visiting`, asks by the ring
 *
 * and since each writes its own word before it reads the other's, at least one of the two sees the other
 * (tests/native/test_shm_visit_model.c).
 */
#ifndef SHM_TABLE_H
#define SHM_TABLE_H

#include "memory/arena.h"

#define SHM_TABLE_PROBES 8

/* Bit of shm_region_entry.access beside OFP_ACCESS_…: tell the owner of every access. */
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
/* -1: there is none. */
int shm_table_descriptor_of(const struct shm_domain *domain);
/* False: no entry has the key. */
bool shm_table_find(const struct shm_region_entry *table, uint64_t key, struct shm_target *target);
/* The table of a link's owner; NULL: not mapped (yet). */
const struct shm_region_entry *shm_table_resolve(struct shm_link *link);

/* The visitor's half. False: the region is not what it was, or its owner closes; nothing is to be ended then. */
bool shm_visit_start(struct shm_link *link, const struct shm_target *target);
/* False: it is no longer what it was, so what was moved may not count. */
bool shm_visit_end(struct shm_link *link, const struct shm_target *target);
/* Wait, at most until `deadline`, until no peer reaches into the endpoint's domain by way of it. */
void shm_visitors_wait(struct shm_endpoint *endpoint, uint64_t deadline);

#endif
