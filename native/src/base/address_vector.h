/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of addresses: addresses by index (an id of ids.c, of generation 0 at first) and, by a hash table, indices by
 * address. The caller holds the domain's lock.
 */
#ifndef OFPI_ADDRESS_VECTOR_H
#define OFPI_ADDRESS_VECTOR_H

#include "ofipy/provider.h"

struct ofpi_av_table;
/* `provider`: the provider of the addresses; NULL: the key of an address is the whole address. */
struct ofpi_av_table *ofpi_av_table_create(const struct ofp_provider *provider);
void ofpi_av_table_free(struct ofpi_av_table *table);
/* -ENOMEM, -OFP_EEXHAUSTED. */
int ofpi_av_table_insert(struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index);
int ofpi_av_table_find(const struct ofpi_av_table *table, const void *address, size_t length, uint32_t *index);
/* Replace the stored address by one that was found at this index, if the new one is more complete. False: it is not. */
bool ofpi_av_table_replace(struct ofpi_av_table *table, uint32_t index, const void *address, size_t length);
/* Whether the entry was made for an endpoint that called, and not by the program; new entries are the program's. */
void ofpi_av_table_mark_caller(struct ofpi_av_table *table, uint32_t index, bool is_caller);
bool ofpi_av_table_is_caller(const struct ofpi_av_table *table, uint32_t index);
int ofpi_av_table_remove(struct ofpi_av_table *table, uint32_t index);
/* The stored address; NULL: the index is not in use. Valid until the address is removed. */
const void *ofpi_av_table_find_address(const struct ofpi_av_table *table, uint32_t index, size_t *length);
/* The next index in use, from *cursor = 0 on; -ENOENT: no more. The table may change meanwhile. */
int ofpi_av_table_find_next(const struct ofpi_av_table *table, uint32_t *cursor, uint32_t *index);
uint32_t ofpi_av_table_count(const struct ofpi_av_table *table);

#endif
