/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints over several ways, those of the provider `link` (docs/explanation/link.md); the conventions are those of ofp.h.
 *
 * Python reads this file too: declarations, enums and plain integer #defines only.
 */
#ifndef OFIPY_WAYS_H
#define OFIPY_WAYS_H

#include "ofipy/ofp.h"

/* The provider that is built in: endpoints of several others, which are loaded before. */
int ofp_provider_link(struct ofp_provider **provider, char *text, size_t text_size);
/*
 * Name of the provider by which a peer is reached, or would be. Of an endpoint of one provider its own. -EHOSTUNREACH: its address
 * has no way that leads there from here.
 */
int ofp_peer_way(struct ofp_endpoint *endpoint, uint32_t peer, char *name, size_t size);

/* Enough for `ofp_region_ways`. */
#define OFP_REGION_WAYS_MAX 256
/*
 * The devices' own keys of a region: send them with its key, for `ofp_remote_ways_learn`. *length in: room, out: bytes
 * written, 0 if no device has its own key.
 */
int ofp_region_ways(struct ofp_domain *domain, uint32_t region, void *ways, size_t *length);
/*
 * Any thread, no domain. What came with the key of another process's region, as long as somebody may use it; operations name the key
 * alone. -EINVAL: these bytes are no such thing. Each `learn` that returned 0 has its `forget`.
 */
int ofp_remote_ways_learn(uint64_t key, const void *ways, size_t length);
void ofp_remote_ways_forget(uint64_t key);

#endif
