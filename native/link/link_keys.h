/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Region keys that the devices of peers have made.
 *
 * A region of link has one key by which the peer's core knows it. A device may have made another key of its own, with
 * a base address. These device keys travel in the region's handle, beside the core's key. A process that has such a
 * handle adds the device keys here. Operations name only the core's key, and the lane of the operation finds the key
 * of its device.
 *
 * The table belongs to the process, because handles belong to no domain, and has a lock of its own. It contains only
 * random keys, which no two regions share.
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

/* Encoded size of one device key: length of the provider name (1), name, key (8), base (8), little-endian. */
#define LINK_LANE_KEY_MAX (1 + sizeof(((struct ofp_info *)0)->provider) + 16)

/* Returns the number of bytes written, at most LINK_LANE_KEY_MAX. */
size_t link_keys_write(uint8_t *bytes, const char *provider, const struct link_lane_key *lane);
/* As ofp_remote_ways_learn and ofp_remote_ways_forget. */
int link_keys_add(uint64_t key, const uint8_t *bytes, size_t length);
void link_keys_remove(uint64_t key);
/* Find the key that the device of this provider has made. False: unknown. */
bool link_keys_find(uint64_t key, const char *provider, struct link_lane_key *lane);

#endif
