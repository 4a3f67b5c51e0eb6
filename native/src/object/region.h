/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory-region table of a domain. Ids begin at a random generation, so that one of another domain is likely to be
 * none here; id 0 is the process's address space and has no entry. Keys are random 64-bit (getrandom) or asked for; 0 means
 * none.
 * The caller holds the domain's lock.
 */
#ifndef OFPI_REGION_H
#define OFPI_REGION_H

#include "base/check.h"
#include "base/ids.h"
#include "ofipy/ofp.h"
#include "ofipy/provider.h"

#define OFPI_ACCESS_REMOTE (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE | OFP_ACCESS_DEVICE_ATOMIC)
struct ofpi_region {
    struct ofp_region base;                         /* first: the provider's view */
    uint32_t uses;                                  /* operations in flight that point into it */
    bool open;                                      /* false while it is being closed */
    bool has_key;                                   /* peers may find it, by base.device[0].key */
    struct ofp_list reached;                        /* struct ofp_remote_access: peers inside */
    struct ofp_counter *remote_read, *remote_write; /* counters of peers' accesses; NULL: none. Not retained */
    struct ofpi_region *next_by_key;
};
struct ofpi_regions {
    struct ofpi_ids ids;
    struct ofpi_region **by_key; /* chains of those with has_key; `chains` of them, a power of two */
    uint32_t chains;
    uint32_t key_count; /* of `keys`, those not given out yet */
    uint64_t keys[16];
};
void ofpi_regions_init(struct ofpi_regions *regions);
void ofpi_regions_close(struct ofpi_regions *regions);
/*
 * Takes an id for a region whose base, length and domain the caller fills. NULL with *error: -ENOMEM (also without random
 * numbers), -OFP_EEXHAUSTED.
 */
struct ofpi_region *ofpi_regions_add(struct ofpi_regions *regions, uint32_t access, int *error);
/* Enter it under its base.device[0].key. -OFP_ENOKEY: another one has that key. */
int ofpi_regions_enter_key(struct ofpi_regions *regions, struct ofpi_region *region);
void ofpi_regions_remove_key(struct ofpi_regions *regions, struct ofpi_region *region);
struct ofpi_region *ofpi_regions_find_key(const struct ofpi_regions *regions, uint64_t key); /* NULL: none */
void ofpi_regions_remove(struct ofpi_regions *regions, struct ofpi_region *region);
static inline struct ofpi_region *ofpi_regions_find(const struct ofpi_regions *regions, uint32_t id) /* NULL: none */
{
    return ofpi_ids_find(&regions->ids, id);
}
/* The counter ends: no region counts in it any longer. */
void ofpi_regions_remove_counter(struct ofpi_regions *regions, const struct ofp_counter *counter);
static inline void ofpi_region_retain(struct ofp_region *region)
{
    if (region)
        ((struct ofpi_region *)region)->uses++;
}
static inline void ofpi_region_release(struct ofp_region *region)
{
    if (!region)
        return;
    OFPI_CHECK(((struct ofpi_region *)region)->uses > 0);
    ((struct ofpi_region *)region)->uses--;
}

#endif
