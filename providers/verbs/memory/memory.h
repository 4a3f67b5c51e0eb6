/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory registration. A region of the user's stays registered until it is closed. Other memory is registered for its
 * operation if it is too long to be copied; memory/cache.h stores some for later operations.
 */
#ifndef VERBS_MEMORY_H
#define VERBS_MEMORY_H

#include "objects.h"

/* Keys of the device are marked in RDM endpoints, so that they differ from keys of the user and the core. */
#define VERBS_KEY_MARK (UINT64_C(0x76726273) << 32)
static inline bool verbs_key_is_of_device(uint64_t key) { return key >> 32 == VERBS_KEY_MARK >> 32; }
int verbs_region_open(struct ofp_domain *base, struct ofp_region *region);
void verbs_region_close(struct ofp_domain *base, struct ofp_region *region);
void verbs_region_disowned(struct ofp_domain *base, struct ofp_region *region);

/* As verbs_cache_acquire. On NULL domain->registration_error says why. Release with verbs_cache_release. */
struct verbs_registration *verbs_memory_acquire(struct verbs_domain *domain, struct ofp_region *region, void *base,
                                                uint64_t length, int access);
/* The memory region of a registered region. NULL: there is none, it has no bytes, or its memory has an owner. */
struct ibv_mr *verbs_mr_of_region(const struct verbs_domain *domain, struct ofp_region *region);
/* Whether peers may read a registered region. */
bool verbs_region_is_readable(const struct verbs_domain *domain, const struct ofp_region *region);

/*
 * Get the local keys of an operation's memory. Memory without a region is registered; `registered` and
 * `registered_count` list what to release. `writes`: the device writes into the memory. On an error nothing stays
 * registered.
 */
int verbs_memory_acquire_keys(struct verbs_domain *domain, const struct ofp_transfer *transfer, bool writes,
                              uint32_t *keys, struct verbs_registration **registered, uint32_t *registered_count);
void verbs_memory_release_keys(struct verbs_domain *domain, struct verbs_registration **registered, uint32_t *count);
/* Whether all memory of an operation has keys already. */
bool verbs_memory_is_registered(const struct verbs_domain *domain, const struct ofp_transfer *transfer);

#endif
