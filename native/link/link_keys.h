/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What devices of peers call memory of theirs. A region of link has one key by which its core knows it, and a device may have made
 * another of its own, with addresses to count from; those travel in the region's handle, beside the core's key. Whoever holds such a
 * handle has entered them here, and operations name the core's key alone: the way that they take looks up what its device needs.
 *
 * One table for the process, since handles are of no domain; it has a lock of its own. Only keys that were drawn are in it, which no
 * other region has.
 */
#ifndef LINK_KEYS_H
#define LINK_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ofipy/provider.h"

struct link_lane_key {
    uint64_t key;
    uint64_t remote_base;
};

/* Bytes of one way, of those that a handle brings: length of the provider's name (1), name, key (8), base (8), little-endian. */
#define LINK_LANE_KEY_MAX (1 + sizeof(((struct ofp_info *)0)->provider) + 16)

/* Returns how many bytes it wrote, at most LINK_LANE_KEY_MAX. */
size_t link_keys_write(uint8_t *bytes, const char *provider, const struct link_lane_key *lane);
/* As ofp_remote_ways_learn and ofp_remote_ways_forget. */
int link_keys_add(uint64_t key, const uint8_t *bytes, size_t length);
void link_keys_remove(uint64_t key);
/* What the device of this provider calls it. False: not known. */
bool link_keys_find(uint64_t key, const char *provider, struct link_lane_key *lane);

#endif
