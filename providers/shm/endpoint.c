/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: opening, closing, going to sleep. */
#include "endpoint.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "connection/hello.h"
#include "connection/lifecycle.h"
#include "connection/listen.h"
#include "connection/meet.h"
#include "connection/repair.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/link.h"
#include "link/publish.h"
#include "link/table.h"
#include "memory/segment.h"
#include "message/pull.h"
#include "message/push.h"
#include "message/receive.h"
#include "rma/direct.h"

/* GOODBYE slots wait at most this long for space in a ring, ns. After that a close notice goes through a socket. */
#define GOODBYE_PATIENCE UINT64_C(50000000)

/* The retry timer only has to end the sleep: progress does the rest. */
static void handle_retry_timer(struct ofp_timer *timer, uint64_t now)
{
    (void)timer;
    (void)now;
}

static void check_own_segment(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    shm_segment_repair(OFP_CONTAINER_OF(timer, struct shm_endpoint, check_timer));
}

/* Free the pulls and pushes of a link. The core ends the receives and operations themselves. */
static void free_link_transfers(struct shm_link *link)
{
    shm_pulls_free(link);
    shm_pushes_free(link);
}

static struct ofpi_meeting *find_meeting(const struct ofp_peer *peer)
{
    return shm_link_of(peer) ? &shm_link_of(peer)->met : NULL;
}

static void drain_link(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    (void)end;
    shm_link_start_drain(shm_link_of(peer));
}

/* Without `probe`: a pidfd tells whether the process lives. */
static const struct ofpi_meeting_ops meeting_ops = {
    .find = find_meeting,
    .dial = shm_peer_call,
    .accept = shm_call_accept,
    .refuse = shm_call_put_off,
    .close = shm_peer_close,
    .lose = ofpi_meeting_report_loss,
    .drain = drain_link,
    .use = shm_peer_report_up,
};

static const struct shm_upper upper = {
    .meeting = &meeting_ops,
    .meeting_connected = shm_meeting_connected,
    .meeting_received = shm_meeting_received,
    .meeting_disconnected = shm_meeting_disconnected,
    .meeting_failed = shm_meeting_failed,
    .request_arena = shm_arena_request,
    .free_transfers = free_link_transfers,
    .drain_ring = shm_ring_drain,
};

int shm_endpoint_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size)
{
    struct shm_domain *domain = shm_domain_of(base->domain);
    struct shm_endpoint *endpoint = shm_endpoint_of(base);
    int error;

    endpoint->base = base;
    endpoint->domain = domain;
    endpoint->upper = &upper;
    endpoint->retry_timer.expired = handle_retry_timer;
    endpoint->check_timer.expired = check_own_segment;
    endpoint->number_cursor = 1;
    ofp_list_init(&endpoint->busy);
    ofp_list_init(&endpoint->to_wake);
    ofp_list_init(&endpoint->meetings);
    ofp_list_init(&endpoint->pulls);
    ofp_list_init(&endpoint->awaited);
    ofp_list_init(&endpoint->pushing);
    ofp_list_init(&endpoint->remotes);
    endpoint->incarnation = shm_random_read();
    error = shm_segment_create(&endpoint->segment, domain->slot_shift, domain->bounce_size, domain->bounce_count,
                               endpoint->incarnation, base->identity, &endpoint->segment_fd, text, text_size);
    if (error)
        return error;
    endpoint->ring = (struct shm_ring){endpoint->segment.header, endpoint->segment.slots, domain->slot_shift};
    if (base->remote_events)
        ofp_store_relaxed(&endpoint->segment.header->status, shm_status_compute(endpoint));
    error = shm_bounce_open(endpoint);
    if (error)
        goto close_segment;
    error = shm_listener_open(endpoint, service, text, text_size);
    if (error)
        goto close_bounce;
    ofp_list_append(&domain->endpoints, &endpoint->node);
    return 0;

close_bounce:
    shm_bounce_close(endpoint);
close_segment:
    shm_segment_unmap(&endpoint->segment);
    close(endpoint->segment_fd);
    return error;
}

int shm_endpoint_get_address(struct ofp_endpoint *base, void *address, size_t *length)
{
    const struct shm_address *own = &shm_endpoint_of(base)->address;

    if (*length < sizeof(*own))
        return -OFP_ETOOSMALL;
    memcpy(address, own, sizeof(*own));
    *length = sizeof(*own);
    return 0;
}

/* --------------------------------------------------------------------------------------------------------- sleeping */

/* Whether there is progress to make for which no peer would wake this endpoint. */
static bool needs_progress(struct shm_endpoint *endpoint)
{
    uint64_t state = shm_ring_peek_armed(&endpoint->ring, endpoint->head);

    /* Stalled: the slot waits for a receive of the application, and posting one makes progress. */
    if (shm_ring_is_ready(&endpoint->ring, endpoint->head, state))
        return !endpoint->stalled;
    if (!shm_head_repair(endpoint))
        shm_retry_schedule(endpoint);
    if (endpoint->work & SHM_WORK_LINKS && shm_links_progress(endpoint))
        return true;
    return !ofp_list_empty(&endpoint->pulls) || shm_pushes_can_move(endpoint) || shm_remotes_can_move(endpoint);
}

/*
 * A process that maps the segment may have cleared SHM_SLEEPING by mistake. Then no sender wakes this endpoint, so a
 * timer checks the segment.
 */
static void schedule_segment_check(struct shm_endpoint *endpoint)
{
    if (endpoint->check_timer.position || !endpoint->links)
        return;
    endpoint->check_timer.deadline = shm_core->now() + SHM_LOOK_PAUSE;
    shm_core->timer_start(endpoint->domain->base, &endpoint->check_timer);
}

bool shm_endpoint_arm(struct ofp_endpoint *base)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(base);

    /* The receiver's half of the sleep handshake; the sender's is shm_ring_publish. */
    shm_ring_arm(&endpoint->ring);
    endpoint->armed = true;
    if (needs_progress(endpoint))
        return false;
    shm_sleepers_wake(endpoint);
    schedule_segment_check(endpoint);
    /* Operations that wait for space in a ring: no event reports the space. */
    if (!ofp_list_empty(&endpoint->pushing) || !ofp_list_empty(&endpoint->remotes))
        shm_retry_schedule(endpoint);
    return true;
}

void shm_endpoint_disarm(struct ofp_endpoint *base)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(base);

    if (!endpoint->armed)
        return;
    endpoint->armed = false;
    shm_ring_disarm(&endpoint->ring);
}

/* ---------------------------------------------------------------------------------------------------------- closing */

static bool flush_controls(struct shm_endpoint *endpoint)
{
    bool flushed = true;

    for (uint32_t i = 1; i < endpoint->link_capacity; i++) {
        struct shm_link *link = endpoint->links[i];

        if (link && link->process && !link->draining && !shm_controls_flush(link))
            flushed = false;
    }
    return flushed;
}

/* Send a GOODBYE to every peer that has our segment, behind all slots that wait for space in its ring. */
static void send_goodbyes(struct shm_endpoint *endpoint, uint64_t deadline)
{
    uint64_t patience = shm_core->now() + GOODBYE_PATIENCE;

    for (uint32_t i = 1; i < endpoint->link_capacity; i++) {
        struct shm_link *link = endpoint->links[i];

        if (link && link->peer && link->process && !link->draining && link->process != &endpoint->domain->self)
            shm_control_send(link, SHM_GOODBYE, SHM_ENDED, &(struct shm_control_fields){0});
    }
    if (patience > deadline)
        patience = deadline;
    while (!flush_controls(endpoint) && shm_core->now() < patience)
        sched_yield();
    for (uint32_t i = 1; i < endpoint->link_capacity; i++) {
        struct shm_link *link = endpoint->links[i];

        if (link && !link->draining && !ofp_list_empty(&link->controls))
            shm_close_notice_send(link);
    }
}

void shm_endpoint_close(struct ofp_endpoint *base, uint64_t deadline)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(base);

    endpoint->closed = true;
    OFP_SHM_STEP(before_closing);
    /*
     * SHM_CLOSING is set first: a peer that still reads our memory checks the bit when it has finished, and only then
     * trusts what it read. The memory is the user's again when this function has returned. Pairs with end_pull, and
     * with shm_visit_start, which begins no new visit.
     */
    ofp_set_bits(&endpoint->ring.header->status, SHM_CLOSING);
    OFP_SHM_STEP(after_closing);
    shm_visitors_wait(endpoint, deadline);
    shm_listener_close(endpoint);
    shm_meetings_close(endpoint, NULL);
    send_goodbyes(endpoint, deadline);
    for (uint32_t i = 1; i < endpoint->link_capacity; i++)
        if (endpoint->links[i])
            shm_link_free(endpoint->links[i]);
    ofp_set_bits(&endpoint->ring.header->status, SHM_CLOSED);
    shm_core->timer_stop(endpoint->domain->base, &endpoint->retry_timer);
    shm_core->timer_stop(endpoint->domain->base, &endpoint->check_timer);
    ofp_list_remove(&endpoint->node);
    shm_bounce_close(endpoint);
    shm_segment_unmap(&endpoint->segment);
    close(endpoint->segment_fd);
    free(endpoint->links);
    free(endpoint->retired_at);
}
