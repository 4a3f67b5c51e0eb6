/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints over several lanes, those of the provider `link` (docs/explanation/link.md); the conventions are those of
 * ofp.h.
 *
 * Python reads this file too: declarations, enums and plain integer #defines only.
 */
#ifndef OFIPY_WAYS_H
#define OFIPY_WAYS_H

#include "ofipy/ofp.h"

/* The built-in provider `link`, whose endpoints combine those of several other providers. Load those before. */
int ofp_provider_link(struct ofp_provider **provider, char *text, size_t text_size);
/*
 * Name of the provider of the lane to a peer, whether it is connected or not; for an endpoint of one provider, that
 * provider. -EHOSTUNREACH: no lane leads from here to the peer's address.
 */
int ofp_peer_way(struct ofp_endpoint *endpoint, uint32_t peer, char *name, size_t size);

/* Sufficient buffer size for `ofp_region_ways`. */
#define OFP_REGION_WAYS_MAX 256
/*
 * The devices' own keys of a region. Send them together with the region key, for `ofp_remote_ways_learn`. *length in:
 * size of the buffer, out: bytes written, 0 if no device has its own key.
 */
int ofp_region_ways(struct ofp_domain *domain, uint32_t region, void *ways, size_t *length);
/*
 * Store the result of ofp_region_ways of another process's region while operations may access that region; they name it
 * by the region key alone. Any thread; needs no domain. -EINVAL: the bytes are not valid. Call `forget` once for each
 * `learn` that returned 0.
 */
int ofp_remote_ways_learn(uint64_t key, const void *ways, size_t length);
void ofp_remote_ways_forget(uint64_t key);

#endif
