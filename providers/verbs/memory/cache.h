/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations of memory for operations. That of memory with an owner (region->owned) is kept until the owner leaves, or others need
 * the room; that of any other ends with the operation, since nobody would say when other memory appears at its addresses.
 *
 * An entry is found by its region, never by its address: what stands for memory that has gone is unreachable, even while
 * it is there. The domain's lock guards all.
 */
#ifndef VERBS_CACHE_H
#define VERBS_CACHE_H

#include <stdint.h>

#include "library/library.h"
#include "ofipy/list.h"
#include "ofipy/objects.h"

/* Owned by the cache. Memory of an operation, from take to give. */
struct verbs_registration {
    struct ofp_list node;            /* among the idle ones, those longest idle first */
    struct verbs_registration *next; /* of the same region */
    struct ofp_region *region;       /* NULL: for one operation */
    struct ibv_mr *mr;
    int access;    /* IBV_ACCESS_… */
    uint32_t uses; /* operations in it */
};

struct verbs_cache {
    struct ofp_domain *domain; /* whose counts are advanced */
    struct ibv_pd *pd;
    struct ofp_list idle;
    uint64_t most_bytes, bytes; /* of those that are kept, in use or not */
    uint32_t most, count;
};

/* What is kept at most; what is in use at a time may be more. 0: nothing is kept. */
void verbs_cache_open(struct verbs_cache *cache, struct ofp_domain *domain, struct ibv_pd *pd, uint32_t most,
                      uint64_t most_bytes);
/* Let go of what no operation is in. */
void verbs_cache_clear(struct verbs_cache *cache);
/*
 * A registration with at least these rights that holds `length` bytes at `base`, a part of `region` (NULL: of none). NULL with
 * errno.
 */
struct verbs_registration *verbs_cache_acquire(struct verbs_cache *cache, struct ofp_region *region, void *base,
                                               uint64_t length, int access);
/* The device has no work request in it any more. */
void verbs_cache_release(struct verbs_cache *cache, struct verbs_registration *registration);
/*
 * The owner leaves: forget what is registered of it. A device that is still in it, for an operation that its peer's loss has ended, goes on in the
 * pages that were there, until that is given.
 */
void verbs_cache_remove_region(struct verbs_cache *cache, struct ofp_region *region);

#endif
