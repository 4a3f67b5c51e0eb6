/* SPDX-License-Identifier: BSD-3-Clause */
/* Links as the list of an endpoint, and the marks that any storey above sets on one. */
#ifndef SHM_LINK_H
#define SHM_LINK_H

#include "shm.h"

/* A link without a segment, with a number of its own. NULL: out of memory. */
struct shm_link *shm_link_create(struct shm_endpoint *endpoint, struct ofp_peer *peer);
/* The link of a number that came from outside; NULL: none. */
static inline struct shm_link *shm_link_find(const struct shm_endpoint *endpoint, uint32_t number)
{
    return number < endpoint->link_capacity ? endpoint->links[number] : NULL;
}
/* Have progress look at it. */
void shm_link_schedule(struct shm_link *link);
/* The other side is dead, closed or made anew: read what the ring holds from it, then lose it. */
void shm_link_mark_ended(struct shm_link *link, enum shm_end end);
/* The same, when that is decided. */
void shm_link_start_drain(struct shm_link *link, enum shm_end end);
/* The other side has begun to close: nothing more is posted, its farewell or SHM_CLOSED ends the link. */
void shm_link_mark_closing(struct shm_link *link);
/* One of its RMA or atomic operations has begun and is not through; it has left whole. */
void shm_remote_start(struct shm_link *link, struct ofp_pending *pending);
void shm_remote_end(struct shm_link *link);

#endif
