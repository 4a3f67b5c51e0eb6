/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_address.h"

#include <errno.h>
#include <string.h>

static const char magic[] = {'O', 'F', 'P', 'A'};

enum { VERSION = 2, CONNECTS_ONLY = 1 };

/* Offsets of version 2. Version 1 has the host at the place of the flags, and neither flags nor identity. */
enum { AT_VERSION = 4, AT_COUNT = 5, AT_FLAGS = 6, AT_HOST = 8, HEAD_SIZE_1 = 22, AT_HOST_1 = 6 };
_Static_assert(AT_HOST + LINK_HOST_SIZE == LINK_IDENTITY_OFFSET, "layout");
_Static_assert(LINK_IDENTITY_OFFSET + OFP_IDENTITY_SIZE == LINK_HEAD_SIZE, "layout");

static uint16_t read_u16(const uint8_t *bytes) { return (uint16_t)(bytes[0] | bytes[1] << 8); }

static void write_u16(uint8_t *bytes, size_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

/* Decode the entry at `at`. Returns the end of the entry, or NULL if it is truncated or empty. */
static const uint8_t *read_entry(const uint8_t *at, const uint8_t *end, struct link_entry *entry)
{
    size_t left = (size_t)(end - at);

    if (left < LINK_ENTRY_HEAD || !at[0] || left < LINK_ENTRY_HEAD + (size_t)at[0])
        return NULL;
    entry->name_length = at[0];
    entry->name = (const char *)at + 1;
    at += 1 + entry->name_length;
    entry->length = read_u16(at);
    entry->address = at + 2;
    if (!entry->length || entry->length > OFP_ADDRESS_MAX || entry->length > (size_t)(end - at) - 2)
        return NULL;
    return at + 2 + entry->length;
}

static bool is_address_whole(const struct link_address *address)
{
    const uint8_t *at = address->entries;
    struct link_entry entry;

    for (uint32_t i = 0; i < address->count && at; i++)
        at = read_entry(at, address->end, &entry);
    return address->count && at == address->end;
}

static bool read_head(struct link_address *address, const uint8_t *head, size_t length)
{
    static const uint8_t none[OFP_IDENTITY_SIZE];

    if (length < HEAD_SIZE_1 || memcmp(head, magic, sizeof(magic)) != 0)
        return false;
    address->count = head[AT_COUNT];
    address->end = head + length;
    if (head[AT_VERSION] == 1) {
        address->connects_only = false;
        address->host = head + AT_HOST_1;
        address->identity = none;
        address->entries = head + HEAD_SIZE_1;
        return true;
    }
    if (head[AT_VERSION] != VERSION || length < LINK_HEAD_SIZE)
        return false;
    address->connects_only = read_u16(head + AT_FLAGS) & CONNECTS_ONLY;
    address->host = head + AT_HOST;
    address->identity = head + LINK_IDENTITY_OFFSET;
    address->entries = head + LINK_HEAD_SIZE;
    return !(read_u16(head + AT_FLAGS) & ~CONNECTS_ONLY);
}

int link_address_read(struct link_address *address, const void *bytes, size_t length)
{
    return read_head(address, bytes, length) && is_address_whole(address) ? 0 : -EINVAL;
}

bool link_address_read_next(const struct link_address *address, const uint8_t **cursor, struct link_entry *entry)
{
    const uint8_t *at = *cursor ? *cursor : address->entries;

    if (at == address->end)
        return false;
    *cursor = read_entry(at, address->end, entry);
    return true;
}

int link_writer_init(struct link_writer *writer, void *bytes, size_t size, const uint8_t *host, const uint8_t *identity,
                     bool connects_only)
{
    *writer = (struct link_writer){bytes, size, LINK_HEAD_SIZE};
    if (size < LINK_HEAD_SIZE)
        return -OFP_ETOOSMALL;
    memcpy(writer->bytes, magic, sizeof(magic));
    writer->bytes[AT_VERSION] = VERSION;
    writer->bytes[AT_COUNT] = 0;
    write_u16(writer->bytes + AT_FLAGS, connects_only ? CONNECTS_ONLY : 0);
    memcpy(writer->bytes + AT_HOST, host, LINK_HOST_SIZE);
    memcpy(writer->bytes + LINK_IDENTITY_OFFSET, identity, OFP_IDENTITY_SIZE);
    return 0;
}

int link_address_add(struct link_writer *writer, const char *name, const void *address, size_t length)
{
    size_t name_length = strlen(name);
    uint8_t *at = writer->bytes + writer->length;

    if (writer->size - writer->length < LINK_ENTRY_HEAD + name_length + length || writer->bytes[AT_COUNT] == UINT8_MAX)
        return -OFP_ETOOSMALL;
    at[0] = (uint8_t)name_length;
    memcpy(at + 1, name, name_length);
    write_u16(at + 1 + name_length, length);
    memcpy(at + LINK_ENTRY_HEAD + name_length, address, length);
    writer->length += LINK_ENTRY_HEAD + name_length + length;
    writer->bytes[AT_COUNT]++;
    return 0;
}

const void *link_address_find_key(const void *bytes, size_t *length, uint32_t number)
{
    struct link_address address;
    const uint8_t *cursor = NULL;
    struct link_entry entry = {0};

    if (link_address_read(&address, bytes, *length) != 0)
        return NULL;
    if (!link_is_zero(address.identity, OFP_IDENTITY_SIZE) && number-- == 0) {
        *length = OFP_IDENTITY_SIZE;
        return address.identity;
    }
    do
        if (!link_address_read_next(&address, &cursor, &entry))
            return NULL;
    while (number--);
    *length = LINK_ENTRY_HEAD + entry.name_length + entry.length;
    return cursor - *length;
}

enum ofp_address_relation link_address_compare(const void *known_bytes, size_t known_length, const void *given_bytes,
                                               size_t given_length)
{
    struct link_address known, given;
    bool anonymous;

    if (link_address_read(&known, known_bytes, known_length) != 0 ||
        link_address_read(&given, given_bytes, given_length) != 0)
        return OFP_ADDRESS_OTHER;
    anonymous = link_is_zero(known.identity, OFP_IDENTITY_SIZE);
    if (link_is_zero(given.identity, OFP_IDENTITY_SIZE))
        return anonymous ? OFP_ADDRESS_BETTER : OFP_ADDRESS_SAME;
    if (!anonymous && memcmp(known.identity, given.identity, OFP_IDENTITY_SIZE) != 0)
        return OFP_ADDRESS_OTHER;
    /* The address of an unknown caller has only the entry of the lane by which it called. */
    return anonymous || given.count >= known.count ? OFP_ADDRESS_BETTER : OFP_ADDRESS_SAME;
}
