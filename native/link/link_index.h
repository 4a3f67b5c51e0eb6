/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is known by an identity, be it stated by an address or learned from who called or answered. One for each endpoint. It owns
 * nobody; whom the core has removed from the vector is not found any more.
 */
#ifndef LINK_INDEX_H
#define LINK_INDEX_H

#include "ofipy/objects.h"

struct link_index;

struct link_index *link_index_open(void); /* NULL: out of memory */
void link_index_close(struct link_index *index);
/* The newest peer of an identity takes its place. -ENOMEM. */
int link_index_add(struct link_index *index, const uint8_t *identity, struct ofp_peer *outer);
/* If it is the one. */
void link_index_remove(struct link_index *index, const uint8_t *identity, const struct ofp_peer *outer);
struct ofp_peer *link_index_find(const struct link_index *index, const uint8_t *identity);

#endif
