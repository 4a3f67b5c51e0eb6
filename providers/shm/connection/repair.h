/* SPDX-License-Identifier: BSD-3-Clause */
/* Damage to the own segment. */
#ifndef SHM_REPAIR_H
#define SHM_REPAIR_H

#include "shm.h"

/* Whether the slot at the head is in a state that it may be in; false: look again soon. */
bool shm_head_repair(struct shm_endpoint *endpoint);
/* The same of the whole of our segment, as far as it is not payload. */
void shm_segment_repair(struct shm_endpoint *endpoint);
/* Ask every peer whether all that it sends arrives. */
void shm_links_probe(struct shm_endpoint *endpoint);
/* It answered out of its turn: some of its slots were lost. The link is dropped, and its peer met anew. */
void shm_probe_failed(struct shm_link *link);
/* Give the segment up for a fresh one. */
void shm_segment_replace(struct shm_endpoint *endpoint, const char *why);
/* What has its status set in our header, by us. */
uint64_t shm_status_compute(const struct shm_endpoint *endpoint);

#endif
