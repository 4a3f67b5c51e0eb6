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
}

static bool grow(struct ofpi_regions *regions)
{
    uint32_t capacity = regions->capacity ? regions->capacity * 2 : 16;
    struct ofpi_region **entries = realloc(regions->entries, capacity * sizeof(*entries));

    if (!entries)
        return false;
    memset(entries + regions->capacity, 0, (capacity - regions->capacity) * sizeof(*entries));
    regions->entries = entries;
    regions->capacity = capacity;
    return true;
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

static bool is_remote(uint32_t access) { return access & (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE); }

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
    if (is_remote(access) && !(region->base.key = random_key(regions))) {
        free(region);
        return NULL;
    }
    region->base.id = id;
    region->base.access = access;
    region->open = true;
    regions->entries[id] = region;
    regions->first_free = id + 1;
    regions->live++;
    return region;
}

void ofpi_regions_remove(struct ofpi_regions *regions, struct ofpi_region *region)
{
    uint32_t id = region->base.id;

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
