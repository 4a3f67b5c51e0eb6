/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of a domain's memory regions. Ids start at a random generation, so that an id of another domain is likely
 * to be invalid here. Id 0 is the process's address space and has no entry. Keys are random 64-bit numbers (getrandom),
 * or chosen by the user; 0 means none. The caller holds the domain's lock.
 */
#ifndef OFPI_REGION_H
#define OFPI_REGION_H

#include "base/check.h"
#include "base/ids.h"
#include "ofipy/ofp.h"
#include "ofipy/provider.h"

#define OFPI_ACCESS_REMOTE (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE | OFP_ACCESS_DEVICE_ATOMIC)
struct ofpi_region {
    struct ofp_region base;  /* first: the provider's view */
    uint32_t uses;           /* references by operations in flight */
    bool open;               /* false while it is being closed */
    bool has_key;            /* it is in `by_key`, under base.device[0].key, so peers can access it */
    struct ofp_list reached; /* struct ofp_remote_access: peers' accesses in progress */
    struct ofp_counter *remote_read, *remote_write; /* counters of peers' accesses; NULL: none. Not owned */
    struct ofpi_region *next_by_key;
};
struct ofpi_regions {
    struct ofpi_ids ids;
    struct ofpi_region **by_key; /* hash table of regions with has_key; its size, `chains`, is a power of two */
    uint32_t chains;
    uint32_t key_count; /* number of unused `keys` */
    uint64_t keys[16];
};
void ofpi_regions_init(struct ofpi_regions *regions);
void ofpi_regions_close(struct ofpi_regions *regions);
/*
 * Create a region with an id; the caller sets base, length and domain. NULL with *error: -ENOMEM (also without random
 * numbers), -OFP_EEXHAUSTED.
 */
struct ofpi_region *ofpi_regions_add(struct ofpi_regions *regions, uint32_t access, int *error);
/* Add the region under its base.device[0].key. -OFP_ENOKEY: another region has that key. */
int ofpi_regions_enter_key(struct ofpi_regions *regions, struct ofpi_region *region);
void ofpi_regions_remove_key(struct ofpi_regions *regions, struct ofpi_region *region);
struct ofpi_region *ofpi_regions_find_key(const struct ofpi_regions *regions, uint64_t key); /* NULL: none */
void ofpi_regions_remove(struct ofpi_regions *regions, struct ofpi_region *region);
static inline struct ofpi_region *ofpi_regions_find(const struct ofpi_regions *regions, uint32_t id) /* NULL: none */
{
    return ofpi_ids_find(&regions->ids, id);
}
/* The counter closes: remove it from all regions. */
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
