/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cache of memory registrations. A registration of memory with an owner (region->owned) is stored until the owner ends
 * or others need the space. Memory without an owner is registered for one operation, since nothing reports when other
 * memory appears at its address. A registration is found by its region, never by its address: a stale one cannot be
 * found. Guarded by the domain's lock.
 */
#ifndef VERBS_CACHE_H
#define VERBS_CACHE_H

#include <stdint.h>

#include "library/library.h"
#include "ofipy/list.h"
#include "ofipy/objects.h"

/* Owned by the cache. An operation may use it from acquire to release. */
struct verbs_registration {
    struct ofp_list node;            /* in the list of idle ones, longest idle first */
    struct verbs_registration *next; /* the next registration of the region */
    struct ofp_region *region;       /* NULL: for one operation */
    struct ibv_mr *mr;
    int access;    /* IBV_ACCESS_* flags */
    uint32_t uses; /* operations that use it */
};

struct verbs_cache {
    struct ofp_domain *domain; /* for its counters */
    struct ibv_pd *pd;
    struct ofp_list idle;
    uint64_t most_bytes, bytes; /* of all stored registrations, in use or idle */
    uint32_t most, count;
};

/* `most` and `most_bytes` limit stored registrations; those in use may exceed them. 0: none is stored. */
void verbs_cache_open(struct verbs_cache *cache, struct ofp_domain *domain, struct ibv_pd *pd, uint32_t most,
                      uint64_t most_bytes);
/* Close all idle registrations. */
void verbs_cache_clear(struct verbs_cache *cache);
/*
 * Acquire a registration of `length` bytes at `base` with at least these rights. `region` contains the bytes, or is
 * NULL. Returns NULL with errno.
 */
struct verbs_registration *verbs_cache_acquire(struct verbs_cache *cache, struct ofp_region *region, void *base,
                                               uint64_t length, int access);
/* Release a registration that no work request uses any more. */
void verbs_cache_release(struct verbs_cache *cache, struct verbs_registration *registration);
/*
 * The owner of the region ends: remove its registrations. Work requests that still use one, of an operation that ended
 * when its peer was lost, access the old pages until it is released.
 */
void verbs_cache_remove_region(struct verbs_cache *cache, struct ofp_region *region);

#endif
