/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address of an endpoint that is reached in several ways, as bytes (docs/explanation/link.md): version 2, and version 1,
 * which is read. What comes from outside is checked whole before anything of it is used.
 */
#ifndef LINK_ADDRESS_H
#define LINK_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ofipy/provider.h"

#define LINK_HOST_SIZE 16
#define LINK_HEAD_SIZE 40
#define LINK_ENTRY_HEAD 3 /* both lengths */
/* Where the identity lies, of version 2. */
#define LINK_IDENTITY_OFFSET 24

struct link_entry {
    const char *name; /* not ended by a zero */
    size_t name_length;
    const void *address;
    size_t length;
};

/* What was read; everything points into the bytes. */
struct link_address {
    uint32_t count;
    bool connects_only;
    const uint8_t *host;     /* LINK_HOST_SIZE bytes */
    const uint8_t *identity; /* OFP_IDENTITY_SIZE bytes; zeros: not known */
    const uint8_t *entries, *end;
};

/* 0, or -EINVAL: of another version, cut off, damaged. */
int link_address_read(struct link_address *address, const void *bytes, size_t length);
/* The next entry, from *cursor = NULL on. False: there are no more. */
bool link_address_read_next(const struct link_address *address, const uint8_t **cursor, struct link_entry *entry);
static inline bool link_entry_is_of(const struct link_entry *entry, const char *name, size_t length)
{
    return entry->name_length == length && __builtin_memcmp(entry->name, name, length) == 0;
}
static inline bool link_is_zero(const uint8_t *bytes, size_t length)
{
    uint8_t any = 0;

    for (size_t i = 0; i < length; i++)
        any |= bytes[i];
    return !any;
}

/* Writing: the head, then the entries. `size`: the room. */
struct link_writer {
    uint8_t *bytes;
    size_t size, length;
};
/* `host` and `identity`: zeros, when not known. -OFP_ETOOSMALL. */
int link_writer_init(struct link_writer *writer, void *bytes, size_t size, const uint8_t *host, const uint8_t *identity,
                     bool connects_only);
/* -OFP_ETOOSMALL: it does not fit, and nothing has changed. */
int link_address_add(struct link_writer *writer, const char *name, const void *address, size_t length);

/*
 * As of ofp_provider: an address is found by its identity and by each of its entries, and is the same unless both have an identity and
 * those differ.
 */
const void *link_address_find_key(const void *bytes, size_t *length, uint32_t number);
enum ofp_address_relation link_address_compare(const void *known_bytes, size_t known_length, const void *given_bytes,
                                               size_t given_length);

#endif
