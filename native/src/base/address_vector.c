/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses by index, and a chained hash table of their keys. */
#include "base/address_vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/ids.h"
#include "ofipy/types.h"

/* A key of an address: a part by which it is found. Most addresses have one key, the whole address. */
struct key {
    struct key *next; /* of the bucket */
    struct entry *entry;
    const void *bytes; /* within entry->address */
    size_t length;
};

struct entry {
    uint32_t id, length, key_count;
    bool is_caller;
    char *address; /* behind the keys */
    struct key keys[];
};

struct ofpi_av_table {
    struct ofpi_ids ids;
    /* A provider whose addresses may have several keys; NULL: each address has one. */
    const struct ofp_provider *provider;
    struct key **buckets;
    uint32_t bucket_count; /* a power of two */
    uint64_t seed;         /* random, so that peers cannot choose addresses that collide */
};

__extension__ typedef unsigned __int128 uint128;

static uint64_t compute_address_hash(const struct ofpi_av_table *table, const void *address, size_t length)
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

struct ofpi_av_table *ofpi_av_table_create(const struct ofp_provider *provider)
{
    struct ofpi_av_table *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->provider = provider && provider->address_key ? provider : NULL;
    ofpi_ids_init(&table->ids, 0, 0);
    if (getrandom(&table->seed, sizeof(table->seed), 0) != sizeof(table->seed))
        table->seed = (uint64_t)(uintptr_t)table;
    return table;
}

void ofpi_av_table_free(struct ofpi_av_table *table)
{
    struct entry *entry;
    uint32_t cursor = 0;

    while ((entry = ofpi_ids_find_next(&table->ids, &cursor)))
        free(entry);
    ofpi_ids_close(&table->ids);
    free(table->buckets);
    free(table);
}

/* Key number `number` of an address. False: there is no such key. */
static bool get_address_key(const struct ofpi_av_table *table, const void *address, size_t length, uint32_t number,
                            struct key *key)
{
    key->bytes = address;
    key->length = length;
    if (table->provider)
        key->bytes = table->provider->address_key(address, &key->length, number);
    return table->provider ? key->bytes != NULL : number == 0;
}

static struct key **find_key_bucket(const struct ofpi_av_table *table, const struct key *key)
{
    return &table->buckets[compute_address_hash(table, key->bytes, key->length) & (table->bucket_count - 1)];
}

static void add_to_buckets(struct ofpi_av_table *table, struct entry *entry)
{
    for (uint32_t i = 0; i < entry->key_count; i++) {
        struct key **bucket = find_key_bucket(table, &entry->keys[i]);

        entry->keys[i].next = *bucket;
        *bucket = &entry->keys[i];
    }
}

static void remove_from_buckets(struct ofpi_av_table *table, const struct entry *entry)
{
    for (uint32_t i = 0; i < entry->key_count; i++) {
        struct key **link = find_key_bucket(table, &entry->keys[i]);

        while (*link != &entry->keys[i])
            link = &(*link)->next;
        *link = entry->keys[i].next;
    }
}

/* Set-up path: resize to one bucket per index, and insert all keys again. */
static int grow_buckets(struct ofpi_av_table *table)
{
    struct key **buckets = calloc(table->ids.capacity, sizeof(struct key *));
    struct entry *entry;
    uint32_t cursor = 0;

    if (!buckets)
        return -ENOMEM;
    free(table->buckets);
    table->buckets = buckets;
    table->bucket_count = table->ids.capacity;
    while ((entry = ofpi_ids_find_next(&table->ids, &cursor)))
        add_to_buckets(table, entry);
    return 0;
}

static int compare_addresses(const struct ofpi_av_table *table, const struct entry *entry, const void *address,
                             size_t length)
{
    return table->provider ? table->provider->address_relation(entry->address, entry->length, address, length)
                           : OFP_ADDRESS_SAME;
}

/* The entry that the key belongs to, if its address may be of the same endpoint. */
static struct entry *find_entry_by_key(const struct ofpi_av_table *table, const struct key *key, const void *address,
                                       size_t length)
{
    struct key *found = table->bucket_count ? *find_key_bucket(table, key) : NULL;

    while (found && (found->length != key->length || memcmp(found->bytes, key->bytes, key->length) != 0 ||
                     compare_addresses(table, found->entry, address, length) == OFP_ADDRESS_OTHER))
        found = found->next;
    return found ? found->entry : NULL;
}

int ofpi_av_table_find(const struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index)
{
    const struct entry *entry = NULL;
    struct key key;

    for (uint32_t i = 0; !entry && get_address_key(table, address, length, i, &key); i++)
        entry = find_entry_by_key(table, &key, address, length);
    if (!entry)
        return -ENOENT;
    *index = entry->id;
    return 0;
}

static struct entry *create_entry(const struct ofpi_av_table *table, const void *address, size_t length)
{
    uint32_t count = 0;
    struct entry *entry;
    struct key key;

    while (get_address_key(table, address, length, count, &key))
        count++;
    entry = calloc(1, sizeof(*entry) + count * sizeof(entry->keys[0]) + length);
    if (!entry)
        return NULL;
    entry->length = (uint32_t)length;
    entry->key_count = count;
    entry->address = memcpy((char *)&entry->keys[count], address, length);
    for (uint32_t i = 0; i < count; i++) {
        get_address_key(table, entry->address, length, i, &entry->keys[i]);
        entry->keys[i].entry = entry;
    }
    return entry;
}

int ofpi_av_table_insert(struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index)
{
    struct entry *entry;
    int result;

    if (ofpi_av_table_find(table, address, length, index) == 0)
        return 0;
    entry = create_entry(table, address, length);
    if (!entry)
        return -ENOMEM;
    result = ofpi_ids_add(&table->ids, entry, &entry->id);
    if (result) {
        free(entry);
        return result;
    }
    if (table->bucket_count == table->ids.capacity) {
        add_to_buckets(table, entry);
    } else if (grow_buckets(table) != 0) {
        ofpi_ids_remove(&table->ids, entry->id);
        free(entry);
        return -ENOMEM;
    }
    *index = entry->id;
    return 0;
}

bool ofpi_av_table_replace(struct ofpi_av_table *table, uint32_t index, const void *address, size_t length)
{
    struct entry *before = ofpi_ids_find(&table->ids, index), *entry;

    if (compare_addresses(table, before, address, length) != OFP_ADDRESS_BETTER)
        return false;
    entry = create_entry(table, address, length);
    if (!entry)
        return false;
    entry->id = index;
    entry->is_caller = before->is_caller;
    remove_from_buckets(table, before);
    table->ids.slots[ofpi_index_of_id(index)].object = entry;
    add_to_buckets(table, entry);
    free(before);
    return true;
}

void ofpi_av_table_mark_caller(struct ofpi_av_table *table, uint32_t index, bool is_caller)
{
    struct entry *entry = ofpi_ids_find(&table->ids, index);

    if (entry)
        entry->is_caller = is_caller;
}

bool ofpi_av_table_is_caller(const struct ofpi_av_table *table, uint32_t index)
{
    const struct entry *entry = ofpi_ids_find(&table->ids, index);

    return entry && entry->is_caller;
}

int ofpi_av_table_remove(struct ofpi_av_table *table, uint32_t index)
{
    struct entry *entry = ofpi_ids_find(&table->ids, index);

    if (!entry)
        return -OFP_EADDRNOTAVAIL;
    remove_from_buckets(table, entry);
    ofpi_ids_remove(&table->ids, index);
    free(entry);
    return 0;
}

const void *ofpi_av_table_find_address(const struct ofpi_av_table *table, uint32_t index, size_t *length)
{
    const struct entry *entry = ofpi_ids_find(&table->ids, index);

    if (!entry)
        return NULL;
    *length = entry->length;
    return entry->address;
}

int ofpi_av_table_find_next(const struct ofpi_av_table *table, uint32_t *cursor, uint32_t *index)
{
    const struct entry *entry = ofpi_ids_find_next(&table->ids, cursor);

    if (!entry)
        return -ENOENT;
    *index = entry->id;
    return 0;
}

uint32_t ofpi_av_table_count(const struct ofpi_av_table *table) { return table->ids.live; }
