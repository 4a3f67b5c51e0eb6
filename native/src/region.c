/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions by id. Ids stay small: the lowest free one is taken. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "parts.h"

void ofpi_regions_init(struct ofpi_regions *regions)
{
    memset(regions, 0, sizeof(*regions));
    regions->first_free = 1;
}

void ofpi_regions_fini(struct ofpi_regions *regions)
{
    for (uint32_t id = 1; id < regions->capacity; id++)
        free(regions->entries[id]);
    free(regions->entries);
    free(regions->by_key);
}

/* Keys that were asked for may be small numbers: spread them. */
static uint32_t chain_of(const struct ofpi_regions *regions, uint64_t key)
{
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (regions->capacity - 1);
}

static void chain(struct ofpi_regions *regions, struct ofpi_region *region)
{
    struct ofpi_region **first = &regions->by_key[chain_of(regions, region->base.key)];

    region->next_by_key = *first;
    *first = region;
}

static bool grow(struct ofpi_regions *regions)
{
    uint32_t capacity = regions->capacity ? regions->capacity * 2 : 16;
    struct ofpi_region **by_key = calloc(capacity, sizeof(*by_key)), **entries;

    entries = by_key ? realloc(regions->entries, capacity * sizeof(*entries)) : NULL;
    if (!entries) {
        free(by_key);
        return false;
    }
    memset(entries + regions->capacity, 0, (capacity - regions->capacity) * sizeof(*entries));
    free(regions->by_key);
    regions->by_key = by_key;
    regions->entries = entries;
    regions->capacity = capacity;
    for (uint32_t id = 1; id < capacity; id++)
        if (entries[id] && entries[id]->has_key)
            chain(regions, entries[id]);
    return true;
}

int ofpi_regions_enter_key(struct ofpi_regions *regions, struct ofpi_region *region)
{
    if (ofpi_regions_find_key(regions, region->base.key))
        return -OFP_ENOKEY;
    region->has_key = true;
    chain(regions, region);
    return 0;
}

void ofpi_regions_remove_key(struct ofpi_regions *regions, struct ofpi_region *region)
{
    struct ofpi_region **link;

    if (!region->has_key)
        return;
    link = &regions->by_key[chain_of(regions, region->base.key)];
    while (*link != region)
        link = &(*link)->next_by_key;
    *link = region->next_by_key;
    region->has_key = false;
}

struct ofpi_region *ofpi_regions_find_key(const struct ofpi_regions *regions, uint64_t key)
{
    struct ofpi_region *region = regions->capacity ? regions->by_key[chain_of(regions, key)] : NULL;

    while (region && region->base.key != key)
        region = region->next_by_key;
    return region;
}

/* Keys come from the kernel in batches. 0: it gave none. */
static uint64_t random_key(struct ofpi_regions *regions)
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

struct ofpi_region *ofpi_regions_add(struct ofpi_regions *regions, uint32_t access)
{
    struct ofpi_region *region;
    uint32_t id = regions->first_free;

    while (id < regions->capacity && regions->entries[id])
        id++;
    if (id >= regions->capacity && !grow(regions))
        return NULL;
    region = calloc(1, sizeof(*region));
    if (!region)
        return NULL;
    if (access & OFPI_ACCESS_REMOTE && !(region->base.key = random_key(regions))) {
        free(region);
        return NULL;
    }
    region->base.id = id;
    region->base.access = access;
    region->open = true;
    ofp_list_init(&region->reached);
    regions->entries[id] = region;
    regions->first_free = id + 1;
    regions->live++;
    return region;
}

void ofpi_regions_remove(struct ofpi_regions *regions, struct ofpi_region *region)
{
    uint32_t id = region->base.id;

    ofpi_regions_remove_key(regions, region);
    regions->entries[id] = NULL;
    regions->live--;
    if (id < regions->first_free)
        regions->first_free = id;
    free(region);
}

struct ofpi_region *ofpi_regions_find(const struct ofpi_regions *regions, uint32_t id)
{
    return id < regions->capacity ? regions->entries[id] : NULL;
}

void ofpi_regions_forget_counter(struct ofpi_regions *regions, const struct ofp_counter *counter)
{
    for (uint32_t id = 1; id < regions->capacity; id++) {
        struct ofpi_region *region = regions->entries[id];

        if (region && region->remote_read == counter)
            region->remote_read = NULL;
        if (region && region->remote_write == counter)
            region->remote_write = NULL;
    }
}
