/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers of one endpoint by identity. The identity comes from the address, or was learned when the peer called or
 * answered. The index owns no peer. A peer that the core has removed from the address vector is not found.
 */
#ifndef LINK_INDEX_H
#define LINK_INDEX_H

#include "ofipy/objects.h"

struct link_index;

struct link_index *link_index_open(void); /* NULL: out of memory */
void link_index_close(struct link_index *index);
/* A newer peer replaces the older one of the same identity. -ENOMEM. */
int link_index_add(struct link_index *index, const uint8_t *identity, struct ofp_peer *outer);
/* Remove an identity if it stands for this peer. */
void link_index_remove(struct link_index *index, const uint8_t *identity, const struct ofp_peer *outer);
struct ofp_peer *link_index_find(const struct link_index *index, const uint8_t *identity);

#endif
