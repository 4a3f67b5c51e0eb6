/* SPDX-License-Identifier: BSD-3-Clause */
/* Detection and repair of damage to the own segment. */
#ifndef SHM_REPAIR_H
#define SHM_REPAIR_H

#include "shm.h"

/* Whether the state of the slot at the head is possible; false: check again soon. */
bool shm_head_repair(struct shm_endpoint *endpoint);
/* Check and repair all of the own segment except payload. */
void shm_segment_repair(struct shm_endpoint *endpoint);
/* Probe every peer, to find out whether all of its slots arrive. */
void shm_links_probe(struct shm_endpoint *endpoint);
/* The ECHO came out of order: slots of the peer were lost. The peer is marked lost and connects again. */
void shm_probe_failed(struct shm_link *link);
/* Replace the segment by a new one. */
void shm_segment_replace(struct shm_endpoint *endpoint, const char *why);
/* The bits that this endpoint has set in its status word, without SHM_SLEEPING. */
uint64_t shm_status_compute(const struct shm_endpoint *endpoint);

#endif
