/* SPDX-License-Identifier: BSD-3-Clause */
/* Filled slots, and who is to look at them. */
#ifndef SHM_PUBLISH_H
#define SHM_PUBLISH_H

#include "shm.h"

/*
 * Wake the owner of the ring if it sleeps; mark the link if the owner closes. `status` is the result of
 * shm_ring_publish.
 */
void shm_owner_notify(struct shm_link *link, uint64_t status);
/* Wake the peers that shm_owner_notify deferred to the end of a call of progress. */
void shm_sleepers_wake(struct shm_endpoint *endpoint);
/* Wake a peer that sleeps until an answer that will be sent soon: waking takes as long as the rest of our copy. */
void shm_sender_wake_ahead(struct shm_link *link);
static inline void shm_slot_publish(struct shm_link *link, struct shm_slot *slot, uint64_t state)
{
    uint64_t status;

    link->stamp_out = shm_stamp_advance(link->stamp_out);
    slot->content.stamp = shm_stamp_of(link->stamp_out);
    status = shm_ring_publish(&link->ring, slot, state);
    if (SHM_UNLIKELY(status))
        shm_owner_notify(link, status);
}

#endif
