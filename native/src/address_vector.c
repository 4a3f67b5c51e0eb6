/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses by index, and a chained hash over them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "parts.h"

struct entry {
    struct entry *next; /* of the bucket */
    uint32_t id, length;
    char address[];
};

struct ofpi_av_table {
    struct ofpi_ids ids;
    struct entry **buckets;
    uint32_t bucket_count; /* a power of two */
    uint64_t seed;         /* peers choose their addresses, and must not be able to choose collisions */
};

__extension__ typedef unsigned __int128 uint128;

static uint64_t hash(const struct ofpi_av_table *table, const void *address, size_t length)
{
    uint64_t value = table->seed ^ length;

    for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
        size_t left = length - done;
        uint64_t word = 0;
        uint128 product;

        memcpy(&word, (const char *)address + done, left < sizeof(word) ? left : sizeof(word));
        product = (uint128)(value ^ word) * (table->seed | 1);
        value = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    return value ^ value >> 32;
}

struct ofpi_av_table *ofpi_av_table_new(void)
{
    struct ofpi_av_table *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    ofpi_ids_init(&table->ids, 0, 0);
    if (getrandom(&table->seed, sizeof(table->seed), 0) != sizeof(table->seed))
        table->seed = (uint64_t)(uintptr_t)table;
    return table;
}

void ofpi_av_table_free(struct ofpi_av_table *table)
{
    struct entry *entry;
    uint32_t cursor = 0;

    while ((entry = ofpi_ids_next(&table->ids, &cursor)))
        free(entry);
    ofpi_ids_fini(&table->ids);
    free(table->buckets);
    free(table);
}

static struct entry **bucket_of(const struct ofpi_av_table *table, const void *address, size_t length)
{
    return &table->buckets[hash(table, address, length) & (table->bucket_count - 1)];
}

static void chain(struct ofpi_av_table *table, struct entry *entry)
{
    struct entry **bucket = bucket_of(table, entry->address, entry->length);

    entry->next = *bucket;
    *bucket = entry;
}

static void unchain(struct ofpi_av_table *table, const struct entry *entry)
{
    struct entry **link = bucket_of(table, entry->address, entry->length);

    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
}

/* Set-up path: as many buckets as there are indices, and the whole table is hashed again. */
static int spread(struct ofpi_av_table *table)
{
    struct entry **buckets = calloc(table->ids.capacity, sizeof(*buckets)), *entry;
    uint32_t cursor = 0;

    if (!buckets)
        return -ENOMEM;
    free(table->buckets);
    table->buckets = buckets;
    table->bucket_count = table->ids.capacity;
    while ((entry = ofpi_ids_next(&table->ids, &cursor)))
        chain(table, entry);
    return 0;
}

int ofpi_av_table_find(const struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index)
{
    const struct entry *entry = table->bucket_count ? *bucket_of(table, address, length) : NULL;

    while (entry && (entry->length != length || memcmp(entry->address, address, length) != 0))
        entry = entry->next;
    if (!entry)
        return -ENOENT;
    *index = entry->id;
    return 0;
}

int ofpi_av_table_insert(struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index)
{
    struct entry *entry;
    int result;

    if (ofpi_av_table_find(table, address, length, index) == 0)
        return 0;
    entry = calloc(1, sizeof(*entry) + length);
    if (!entry)
        return -ENOMEM;
    entry->length = (uint32_t)length;
    memcpy(entry->address, address, length);
    result = ofpi_ids_add(&table->ids, entry, &entry->id);
    if (result) {
        free(entry);
        return result;
    }
    if (table->bucket_count == table->ids.capacity) {
        chain(table, entry);
    } else if (spread(table) != 0) {
        ofpi_ids_remove(&table->ids, entry->id);
        free(entry);
        return -ENOMEM;
    }
    *index = entry->id;
    return 0;
}

int ofpi_av_table_remove(struct ofpi_av_table *table, uint32_t index)
{
    struct entry *entry = ofpi_ids_find(&table->ids, index);

    if (!entry)
        return -OFP_EADDRNOTAVAIL;
    unchain(table, entry);
    ofpi_ids_remove(&table->ids, index);
    free(entry);
    return 0;
}

const void *ofpi_av_table_lookup(const struct ofpi_av_table *table, uint32_t index, size_t *length)
{
    const struct entry *entry = ofpi_ids_find(&table->ids, index);

    if (!entry)
        return NULL;
    *length = entry->length;
    return entry->address;
}

int ofpi_av_table_next(const struct ofpi_av_table *table, uint32_t *cursor, uint32_t *index)
{
    const struct entry *entry = ofpi_ids_next(&table->ids, cursor);

    if (!entry)
        return -ENOENT;
    *index = entry->id;
    return 0;
}

uint32_t ofpi_av_table_count(const struct ofpi_av_table *table) { return table->ids.live; }
