/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/process_lock.h"
#include "base/check.h"

struct entry {
    struct entry *next;
    uint64_t key;
    uint32_t uses;
    bool disputed; /* two handles gave different device keys for this key: none is used */
    size_t length;
    uint8_t bytes[]; /* as received, after the check */
};

/* Guarded by OFPI_LOCK_LINK_KEYS. There are at least as many chains as entries. */
static struct entry **chains;
static uint64_t chain_count, entry_count;

/* -------------------------------------------------------------------------------------------------------------- bytes */

static void write_u64(uint8_t *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value = 0;

    for (int i = 8; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

size_t link_keys_write(uint8_t *bytes, const char *provider, const struct link_lane_key *lane)
{
    size_t length = strlen(provider);

    bytes[0] = (uint8_t)length;
    memcpy(bytes + 1, provider, length);
    write_u64(bytes + 1 + length, lane->key);
    write_u64(bytes + 1 + length + 8, lane->remote_base);
    return 1 + length + 16;
}

static size_t compute_key_size(const uint8_t *at) { return 1 + (size_t)at[0] + 16; }

static bool are_keys_whole(const uint8_t *bytes, size_t length)
{
    const uint8_t *at = bytes, *end = bytes + length;
    uint32_t count = 0;

    while (at != end && count++ < OFP_DEVICE_LIMIT && at[0] && compute_key_size(at) <= (size_t)(end - at))
        at += compute_key_size(at);
    return count && at == end;
}

/* -------------------------------------------------------------------------------------------------------------- table */

/* The link that points to the entry of a key, or to which a new entry is appended. */
static struct entry **find_key_place(uint64_t key)
{
    struct entry **place = &chains[key & (chain_count - 1)];

    OFPI_CHECK(chain_count && (chain_count & (chain_count - 1)) == 0);
    while (*place && (*place)->key != key)
        place = &(*place)->next;
    return place;
}

static bool grow_chains(void)
{
    uint64_t count = chain_count ? chain_count * 2 : 16, before = chain_count;
    struct entry **old = chains, **more = calloc(count, sizeof(*more));

    if (!more)
        return chain_count != 0;
    chains = more;
    chain_count = count;
    for (uint64_t i = 0; i < before; i++) {
        for (struct entry *entry = old[i], *next; entry; entry = next) {
            next = entry->next;
            entry->next = NULL;
            *find_key_place(entry->key) = entry;
        }
    }
    free(old);
    return true;
}

static int add_key(uint64_t key, const uint8_t *bytes, size_t length)
{
    struct entry **place, *entry;

    if (entry_count >= chain_count && !grow_chains())
        return -ENOMEM;
    place = find_key_place(key);
    entry = *place;
    if (entry) {
        entry->uses++;
        entry->disputed |= entry->length != length || memcmp(entry->bytes, bytes, length) != 0;
        return 0;
    }
    entry = calloc(1, sizeof(*entry) + length);
    if (!entry)
        return -ENOMEM;
    entry->key = key;
    entry->uses = 1;
    entry->length = length;
    memcpy(entry->bytes, bytes, length);
    *place = entry;
    entry_count++;
    OFPI_CHECK(entry_count <= chain_count);
    return 0;
}

int link_keys_add(uint64_t key, const uint8_t *bytes, size_t length)
{
    int result;

    if (!are_keys_whole(bytes, length))
        return -EINVAL;
    ofpi_process_lock_acquire(OFPI_LOCK_LINK_KEYS);
    result = add_key(key, bytes, length);
    ofpi_process_lock_release(OFPI_LOCK_LINK_KEYS);
    return result;
}

void link_keys_remove(uint64_t key)
{
    struct entry **place, *entry;

    ofpi_process_lock_acquire(OFPI_LOCK_LINK_KEYS);
    place = chains ? find_key_place(key) : NULL;
    entry = place ? *place : NULL;
    if (entry && --entry->uses == 0) {
        *place = entry->next;
        entry_count--;
        free(entry);
    }
    ofpi_process_lock_release(OFPI_LOCK_LINK_KEYS);
}

static bool find_provider_key(const struct entry *entry, const char *provider, struct link_lane_key *lane)
{
    size_t length = strlen(provider);

    for (const uint8_t *at = entry->bytes; at != entry->bytes + entry->length; at += compute_key_size(at)) {
        if (at[0] != length || memcmp(at + 1, provider, length) != 0)
            continue;
        *lane = (struct link_lane_key){read_u64(at + 1 + length), read_u64(at + 1 + length + 8)};
        return true;
    }
    return false;
}

bool link_keys_find(uint64_t key, const char *provider, struct link_lane_key *lane)
{
    const struct entry *entry;
    bool found;

    ofpi_process_lock_acquire(OFPI_LOCK_LINK_KEYS);
    entry = chains ? *find_key_place(key) : NULL;
    found = entry && !entry->disputed && find_provider_key(entry, provider, lane);
    ofpi_process_lock_release(OFPI_LOCK_LINK_KEYS);
    return found;
}
