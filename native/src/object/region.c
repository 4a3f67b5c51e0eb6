/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions by id, and by region key. */
#include "object/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/ids.h"

void ofpi_regions_init(struct ofpi_regions *regions)
{
    uint32_t generation;

    memset(regions, 0, sizeof(*regions));
    if (getrandom(&generation, sizeof(generation), 0) != sizeof(generation))
        generation = (uint32_t)((uintptr_t)regions >> 12);
    /* Index 0 is not used, so no id is OFP_REGION_PROCESS. */
    ofpi_ids_init(&regions->ids, 1, generation);
}

void ofpi_regions_close(struct ofpi_regions *regions)
{
    struct ofpi_region *region;
    uint32_t cursor = 0;

    while ((region = ofpi_ids_find_next(&regions->ids, &cursor)))
        free(region);
    ofpi_ids_close(&regions->ids);
    free(regions->by_key);
}

/* Multiply, because users may choose small consecutive keys. */
static uint32_t find_key_chain(const struct ofpi_regions *regions, uint64_t key)
{
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (regions->chains - 1);
}

static void add_to_key_chain(struct ofpi_regions *regions, struct ofpi_region *region)
{
    struct ofpi_region **first = &regions->by_key[find_key_chain(regions, region->base.device[0].key)];

    region->next_by_key = *first;
    *first = region;
}

/* Resize to one chain per id slot, and add all regions again. */
static bool grow_key_table(struct ofpi_regions *regions)
{
    struct ofpi_region **by_key = calloc(regions->ids.capacity, sizeof(*by_key)), *region;
    uint32_t cursor = 0;

    if (!by_key)
        return false;
    free(regions->by_key);
    regions->by_key = by_key;
    regions->chains = regions->ids.capacity;
    while ((region = ofpi_ids_find_next(&regions->ids, &cursor)))
        if (region->has_key)
            add_to_key_chain(regions, region);
    return true;
}

int ofpi_regions_enter_key(struct ofpi_regions *regions, struct ofpi_region *region)
{
    if (ofpi_regions_find_key(regions, region->base.device[0].key))
        return -OFP_ENOKEY;
    region->has_key = true;
    add_to_key_chain(regions, region);
    return 0;
}

void ofpi_regions_remove_key(struct ofpi_regions *regions, struct ofpi_region *region)
{
    struct ofpi_region **link;

    if (!region->has_key)
        return;
    link = &regions->by_key[find_key_chain(regions, region->base.device[0].key)];
    while (*link != region)
        link = &(*link)->next_by_key;
    *link = region->next_by_key;
    region->has_key = false;
}

struct ofpi_region *ofpi_regions_find_key(const struct ofpi_regions *regions, uint64_t key)
{
    struct ofpi_region *region = regions->chains ? regions->by_key[find_key_chain(regions, key)] : NULL;

    while (region && region->base.device[0].key != key)
        region = region->next_by_key;
    return region;
}

/* Keys are read from the kernel in batches. 0: the kernel returned an error. */
static uint64_t create_random_key(struct ofpi_regions *regions)
{
    uint64_t key = 0;

    while (!key) {
        if (!regions->key_count) {
            ssize_t got = getrandom(regions->keys, sizeof(regions->keys), 0);

            if (got < 0 && errno != EINTR)
                return 0;
            regions->key_count = got < 0 ? 0 : (uint32_t)((size_t)got / sizeof(regions->keys[0]));
            continue;
        }
        key = regions->keys[--regions->key_count];
    }
    return key;
}

struct ofpi_region *ofpi_regions_add(struct ofpi_regions *regions, uint32_t access, int *error)
{
    struct ofpi_region *region = calloc(1, sizeof(*region));

    *error = -ENOMEM;
    if (!region)
        return NULL;
    if (access & OFPI_ACCESS_REMOTE && !(region->base.device[0].key = create_random_key(regions))) {
        free(region);
        return NULL;
    }
    region->base.access = access;
    region->open = true;
    ofp_list_init(&region->reached);
    *error = ofpi_ids_add(&regions->ids, region, &region->base.id);
    if (*error) {
        free(region);
        return NULL;
    }
    if (regions->chains < regions->ids.capacity && !grow_key_table(regions)) {
        ofpi_regions_remove(regions, region);
        *error = -ENOMEM;
        return NULL;
    }
    return region;
}

void ofpi_regions_remove(struct ofpi_regions *regions, struct ofpi_region *region)
{
    OFPI_CHECK(!region->uses);
    ofpi_regions_remove_key(regions, region);
    ofpi_ids_remove(&regions->ids, region->base.id);
    free(region);
}

void ofpi_regions_remove_counter(struct ofpi_regions *regions, const struct ofp_counter *counter)
{
    struct ofpi_region *region;
    uint32_t cursor = 0;

    while ((region = ofpi_ids_find_next(&regions->ids, &cursor))) {
        if (region->remote_read == counter)
            region->remote_read = NULL;
        if (region->remote_write == counter)
            region->remote_write = NULL;
    }
}
