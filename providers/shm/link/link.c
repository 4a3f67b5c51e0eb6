/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of an endpoint's links: their numbers, and the marks that other layers set. lifecycle.c handles a mark when
 * progress reaches the link: nothing here calls an upper layer.
 */
#include "link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* --------------------------------------------------------------------------------------------------------- numbers */

static int grow_links(struct shm_endpoint *endpoint)
{
    uint32_t capacity = endpoint->link_capacity ? endpoint->link_capacity * 2 : 16;
    struct shm_link **links;
    uint64_t *retired_at;

    if (capacity > SHM_OWNER_MAX)
        return -ENOSPC;
    links = realloc(endpoint->links, capacity * sizeof(struct shm_link *));
    if (!links)
        return -ENOMEM;
    endpoint->links = links;
    retired_at = realloc(endpoint->retired_at, capacity * sizeof(*retired_at));
    if (!retired_at)
        return -ENOMEM;
    endpoint->retired_at = retired_at;
    for (uint32_t i = endpoint->link_capacity; i < capacity; i++) {
        links[i] = NULL;
        retired_at[i] = 0;
    }
    endpoint->link_capacity = capacity;
    return 0;
}

static bool is_number_free(const struct shm_endpoint *endpoint, uint32_t number)
{
    return number && !endpoint->links[number] && endpoint->head >= endpoint->retired_at[number];
}

/* 0: none. */
static uint32_t allocate_number(struct shm_endpoint *endpoint)
{
    uint32_t grown_from = endpoint->link_capacity;

    for (uint32_t i = 0; i < endpoint->link_capacity; i++) {
        uint32_t number = (endpoint->number_cursor + i) % endpoint->link_capacity;

        if (is_number_free(endpoint, number)) {
            endpoint->number_cursor = number + 1;
            return number;
        }
    }
    if (grow_links(endpoint) != 0)
        return 0;
    endpoint->number_cursor = (grown_from ? grown_from : 1) + 1;
    return endpoint->number_cursor - 1;
}

struct shm_link *shm_link_create(struct shm_endpoint *endpoint, struct ofp_peer *peer)
{
    struct shm_link *link =
        aligned_alloc(SHM_CACHE_LINE, (sizeof(*link) + SHM_CACHE_LINE - 1) & ~(SHM_CACHE_LINE - 1ul));
    uint32_t number = link ? allocate_number(endpoint) : 0;

    if (!number) {
        free(link);
        return NULL;
    }
    memset(link, 0, sizeof(*link));
    link->endpoint = endpoint;
    link->peer = peer;
    link->number = number;
    link->stamp_in = (uint32_t)shm_random_read();
    ofp_list_init(&link->controls);
    ofp_list_init(&link->pushes);
    endpoint->links[number] = link;
    if (peer)
        ((struct shm_peer *)peer->private)->link = link;
    return link;
}

/* ----------------------------------------------------------------------------------------------------------- marks */

void shm_link_schedule(struct shm_link *link)
{
    if (!ofp_list_linked(&link->busy))
        ofp_list_append(&link->endpoint->busy, &link->busy);
    link->endpoint->work |= SHM_WORK_LINKS;
}

void shm_link_report_end(struct shm_link *link, bool unread, const struct ofpi_meeting_end *end)
{
    if (link->peer)
        ofpi_meeting_ended(link->endpoint->upper->meeting, link->peer, unread, end);
    else if (unread)
        shm_link_start_drain(link);
}

void shm_link_mark_ended(struct shm_link *link, enum shm_end end)
{
    if (link->draining)
        return;
    link->end = (uint8_t)end;
    shm_link_report_end(link, true, &(struct ofpi_meeting_end){0});
}

void shm_link_start_drain(struct shm_link *link)
{
    link->draining = true;
    link->up = link->ready = false;
    link->drain_until = shm_ring_find_end(&link->endpoint->ring, link->endpoint->head);
    OFP_CHECK(link->drain_until >= link->endpoint->head);
    shm_link_schedule(link);
}

void shm_link_mark_closing(struct shm_link *link)
{
    if (link->draining)
        return;
    link->up = link->ready = false;
    link->closing = true;
    shm_link_schedule(link);
}

void shm_remote_start(struct shm_link *link, struct ofp_pending *pending)
{
    OFP_CHECK(link->ready && link->up && !link->remote_operation && !ofp_list_linked(&link->remotes));
    link->remote_operation = pending;
    link->ready = false;
    ofp_list_append(&link->endpoint->remotes, &link->remotes);
    link->endpoint->work |= SHM_WORK_REMOTE;
}

void shm_remote_end(struct shm_link *link)
{
    OFP_CHECK(link->remote_operation && ofp_list_linked(&link->remotes));
    link->remote_operation = NULL;
    link->ready = link->up;
    ofp_list_remove(&link->remotes);
}
