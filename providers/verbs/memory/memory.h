/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registering memory. What the user registers stays registered as long as the region. Any other memory that is too long to be copied
 * is registered for its operation; memory/cache.h says what is left for the next.
 */
#ifndef VERBS_MEMORY_H
#define VERBS_MEMORY_H

#include "objects.h"

/*
 * Keys of regions for RDM endpoints: those of the device are marked, so that nobody takes one for it that a user chose, or the core.
 */
#define VERBS_KEY_MARK (UINT64_C(0x76726273) << 32)
static inline bool verbs_key_is_of_device(uint64_t key) { return key >> 32 == VERBS_KEY_MARK >> 32; }
int verbs_region_open(struct ofp_domain *base, struct ofp_region *region);
void verbs_region_close(struct ofp_domain *base, struct ofp_region *region);
void verbs_region_disowned(struct ofp_domain *base, struct ofp_region *region);

/* As verbs_cache_acquire; NULL with errno, and domain->refusal says why. verbs_cache_release gives it back. */
struct verbs_registration *verbs_memory_acquire(struct verbs_domain *domain, struct ofp_region *region, void *base,
                                                uint64_t length, int access);
/* What the device knows a region as that was made known to it; NULL: it has no bytes, is an owner's, or there is none. */
struct ibv_mr *verbs_mr_of_region(const struct verbs_domain *domain, struct ofp_region *region);

/*
 * The local keys of the memory of an operation, those without a region registered for it: `registered` and their number say which
 * to give back. `writes`: into that memory. A negative errno: none is registered.
 */
int verbs_memory_acquire_keys(struct verbs_domain *domain, const struct ofp_transfer *transfer, bool writes,
                              uint32_t *keys, struct verbs_registration **registered, uint32_t *registered_count);
void verbs_memory_release_keys(struct verbs_domain *domain, struct verbs_registration **registered, uint32_t *count);
/* Whether all of it has keys without registering anything. */
bool verbs_memory_is_registered(const struct verbs_domain *domain, const struct ofp_transfer *transfer);

#endif
