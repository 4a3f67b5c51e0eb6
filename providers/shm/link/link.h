/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of an endpoint's links, and the marks that any layer above sets on a link. */
#ifndef SHM_LINK_H
#define SHM_LINK_H

#include "shm.h"

/* Create a link without a segment, with a number of its own. NULL: out of memory. */
struct shm_link *shm_link_create(struct shm_endpoint *endpoint, struct ofp_peer *peer);
/* The link of a number that a peer sent; NULL: none. */
static inline struct shm_link *shm_link_find(const struct shm_endpoint *endpoint, uint32_t number)
{
    return number < endpoint->link_capacity ? endpoint->links[number] : NULL;
}
/* Let progress handle the link. */
void shm_link_schedule(struct shm_link *link);
/*
 * The peer is dead, closed, or has replaced its segment. Progress reads what the ring contains from it, then marks it
 * lost.
 */
void shm_link_mark_ended(struct shm_link *link, enum shm_end end);
/*
 * Report the end of a link to the manager of native/meet. `unread`: its slots are read first, also where the core has
 * released the peer.
 */
void shm_link_report_end(struct shm_link *link, bool unread, const struct ofpi_meeting_end *end);
/* Have progress read the slots of the link, which then ends. */
void shm_link_start_drain(struct shm_link *link);
/* The peer has begun to close: nothing more is posted. Its GOODBYE or SHM_CLOSED ends the link. */
void shm_link_mark_closing(struct shm_link *link);
/* An RMA or atomic operation of the link has started and has not left completely; it has left completely. */
void shm_remote_start(struct shm_link *link, struct ofp_pending *pending);
void shm_remote_end(struct shm_link *link);

#endif
