/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding of the address of an endpoint that several lanes reach (docs/explanation/link.md). Version 2 is written;
 * version 1 is read too. Input is checked as a whole before any part is used.
 */
#ifndef LINK_ADDRESS_H
#define LINK_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ofipy/provider.h"

#define LINK_HOST_SIZE 16
#define LINK_HEAD_SIZE 40
#define LINK_ENTRY_HEAD 3 /* both lengths, of name and address */
/* Offset of the identity in version 2. */
#define LINK_IDENTITY_OFFSET 24

struct link_entry {
    const char *name; /* not zero-terminated */
    size_t name_length;
    const void *address;
    size_t length;
};

/* A decoded address. All pointers point into the encoded bytes. */
struct link_address {
    uint32_t count;
    bool connects_only;
    const uint8_t *host;     /* LINK_HOST_SIZE bytes */
    const uint8_t *identity; /* OFP_IDENTITY_SIZE bytes; zeros if unknown */
    const uint8_t *entries, *end;
};

/* 0, or -EINVAL: unknown version, truncated or damaged. */
int link_address_read(struct link_address *address, const void *bytes, size_t length);
/* Read the next entry; begin with *cursor = NULL. False: there are no more. */
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

/* A writer: init writes the head, then each add appends an entry. `size` is the capacity. */
struct link_writer {
    uint8_t *bytes;
    size_t size, length;
};
/* `host` and `identity` are zeros if unknown. -OFP_ETOOSMALL. */
int link_writer_init(struct link_writer *writer, void *bytes, size_t size, const uint8_t *host, const uint8_t *identity,
                     bool connects_only);
/* -OFP_ETOOSMALL: the entry does not fit, and nothing has changed. */
int link_address_add(struct link_writer *writer, const char *name, const void *address, size_t length);

/*
 * As the members of ofp_provider. An address is found by its identity and by each entry. Two addresses are the same
 * endpoint unless both have an identity and the identities differ.
 */
const void *link_address_find_key(const void *bytes, size_t *length, uint32_t number);
enum ofp_address_relation link_address_compare(const void *known_bytes, size_t known_length, const void *given_bytes,
                                               size_t given_length);

#endif
