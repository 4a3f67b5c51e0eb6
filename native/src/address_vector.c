/* SPDX-License-Identifier: BSD-3-Clause */
/* An array of addresses, a chained hash over them, and a queue of free indices. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "parts.h"

#define NO_ENTRY UINT32_MAX

struct entry {
    void *address; /* owned; NULL: the index is free */
    uint32_t length;
    uint32_t chain; /* next entry of the bucket, or of the queue of free indices */
};

struct ofpi_av_table {
    struct entry *entries;
    uint32_t *buckets; /* `capacity` of them, a power of two */
    uint32_t capacity, used, count;
    uint32_t free_first, free_last;
    uint64_t seed; /* peers choose their addresses, and must not be able to choose collisions */
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
    table->free_first = table->free_last = NO_ENTRY;
    if (getrandom(&table->seed, sizeof(table->seed), 0) != sizeof(table->seed))
        table->seed = (uint64_t)(uintptr_t)table;
    return table;
}

void ofpi_av_table_free(struct ofpi_av_table *table)
{
    for (uint32_t i = 0; i < table->used; i++)
        free(table->entries[i].address);
    free(table->entries);
    free(table->buckets);
    free(table);
}

static void chain_entry(struct ofpi_av_table *table, uint32_t index)
{
    struct entry *entry = &table->entries[index];
    uint32_t *bucket = &table->buckets[hash(table, entry->address, entry->length) & (table->capacity - 1)];

    entry->chain = *bucket;
    *bucket = index;
}

/* Set-up path: the whole table is hashed again. */
static int grow(struct ofpi_av_table *table)
{
    uint32_t capacity = table->capacity ? table->capacity * 2 : 16;
    struct entry *entries = realloc(table->entries, capacity * sizeof(*entries));
    uint32_t *buckets;

    if (!entries)
        return -ENOMEM;
    table->entries = entries;
    buckets = realloc(table->buckets, capacity * sizeof(*buckets));
    if (!buckets)
        return -ENOMEM;
    table->buckets = buckets;
    table->capacity = capacity;
    memset(buckets, 0xff, capacity * sizeof(*buckets));
    for (uint32_t i = 0; i < table->used; i++)
        if (entries[i].address)
            chain_entry(table, i);
    return 0;
}

int ofpi_av_table_find(const struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index)
{
    uint32_t at;

    if (!table->capacity)
        return -ENOENT;
    for (at = table->buckets[hash(table, address, length) & (table->capacity - 1)]; at != NO_ENTRY;
         at = table->entries[at].chain) {
        const struct entry *entry = &table->entries[at];

        if (entry->length == length && memcmp(entry->address, address, length) == 0) {
            *index = at;
            return 0;
        }
    }
    return -ENOENT;
}

int ofpi_av_table_insert(struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index)
{
    void *copy;
    bool reuse;

    if (ofpi_av_table_find(table, address, length, index) == 0)
        return 0;
    reuse = table->free_first != NO_ENTRY && table->used == table->capacity;
    if (!reuse && table->used == table->capacity && grow(table) != 0)
        return -ENOMEM;
    copy = malloc(length ? length : 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, address, length);
    if (reuse) {
        *index = table->free_first;
        table->free_first = table->entries[*index].chain;
        if (table->free_first == NO_ENTRY)
            table->free_last = NO_ENTRY;
    } else {
        *index = table->used++;
    }
    table->entries[*index] = (struct entry){.address = copy, .length = (uint32_t)length};
    chain_entry(table, *index);
    table->count++;
    return 0;
}

int ofpi_av_table_remove(struct ofpi_av_table *table, uint32_t index)
{
    struct entry *entry;
    uint32_t *link;

    if (index >= table->used || !table->entries[index].address)
        return -OFP_EADDRNOTAVAIL;
    entry = &table->entries[index];
    link = &table->buckets[hash(table, entry->address, entry->length) & (table->capacity - 1)];
    while (*link != index)
        link = &table->entries[*link].chain;
    *link = entry->chain;
    free(entry->address);
    entry->address = NULL;
    entry->chain = NO_ENTRY;
    if (table->free_last == NO_ENTRY)
        table->free_first = index;
    else
        table->entries[table->free_last].chain = index;
    table->free_last = index;
    table->count--;
    return 0;
}

const void *ofpi_av_table_lookup(const struct ofpi_av_table *table, uint32_t index, size_t *length)
{
    if (index >= table->used || !table->entries[index].address)
        return NULL;
    *length = table->entries[index].length;
    return table->entries[index].address;
}

int ofpi_av_table_next(const struct ofpi_av_table *table, uint32_t *index)
{
    for (uint32_t at = *index; at < table->used; at++) {
        if (table->entries[at].address) {
            *index = at;
            return 0;
        }
    }
    return -ENOENT;
}

uint32_t ofpi_av_table_count(const struct ofpi_av_table *table) { return table->count; }
