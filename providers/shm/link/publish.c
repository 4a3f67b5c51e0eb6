/* SPDX-License-Identifier: BSD-3-Clause */
/* After a slot was published: wake its reader if it sleeps, and check whether the reader closes. */
#include "link/publish.h"

#include <unistd.h>

#include "link/link.h"

static void wake_owner(struct shm_link *link)
{
    uint64_t one = 1;

    /* Of several senders only the one that clears the bit pays for the system call. */
    OFP_SHM_STEP(before_wake);
    if (shm_ring_disarm(&link->ring)) {
        /* EAGAIN: the counter is at its limit, so it is readable. */
        ssize_t ignored = write(link->process->event_fd, &one, sizeof(one));

        (void)ignored;
        OFP_SHM_STEP(after_wake);
    }
}

void shm_owner_notify(struct shm_link *link, uint64_t status)
{
    struct shm_endpoint *endpoint = link->endpoint;

    /* Several answers in one call of progress share one wake-up: it costs as much as copying a large message. */
    if (status & SHM_SLEEPING && endpoint->in_progress) {
        if (!ofp_list_linked(&link->wake))
            ofp_list_append(&endpoint->to_wake, &link->wake);
    } else if (status & SHM_SLEEPING) {
        wake_owner(link);
    }
    if (status & (SHM_CLOSING | SHM_CLOSED) && !(status & ~SHM_STATUS_BITS))
        shm_link_mark_closing(link);
}

void shm_sleepers_wake(struct shm_endpoint *endpoint)
{
    struct ofp_list *node;

    endpoint->moved_since = 0;
    while ((node = ofp_list_pop(&endpoint->to_wake)))
        wake_owner(OFP_CONTAINER_OF(node, struct shm_link, wake));
}

void shm_sender_wake_ahead(struct shm_link *link)
{
    struct shm_endpoint *endpoint = link->endpoint;
    uint64_t next = endpoint->head + 1;

    if (ofp_load_relaxed(&link->ring.header->status) & SHM_SLEEPING && ofp_list_empty(&endpoint->pulls) &&
        !shm_ring_is_ready(&endpoint->ring, next, shm_ring_peek(&endpoint->ring, next)))
        wake_owner(link);
}
