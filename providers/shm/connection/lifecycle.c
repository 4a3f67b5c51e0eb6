/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of links: they are established, lost, and read to their end. While the core has the peer, the manager of
 * native/meet has the state: CONNECTING has no segment yet, ACCEPTED waits for an ACK. A link outlives the core's peer
 * while the other side may still write: its number is not reused until the process is dead, or said GOODBYE, and the
 * ring has been read past everything that the peer may have claimed. Called under the domain's lock.
 */
#include "connection/lifecycle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "connection/meet.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/link.h"
#include "link/process.h"
#include "memory/segment.h"

/* ---------------------------------------------------------------------------------------------------- coming and going */

/* Detach the link from its transfers, meetings and the core's peer. */
static void detach_link(struct shm_link *link)
{
    link->endpoint->upper->free_transfers(link);
    shm_meetings_close(link->endpoint, link);
    if (link->peer)
        ((struct shm_peer *)link->peer->private)->link = NULL;
    link->peer = NULL;
    link->met.state = OFPI_MEET_IDLE;
    link->up = link->ready = false;
    link->remote_operation = NULL;
    if (ofp_list_linked(&link->remotes))
        ofp_list_remove(&link->remotes);
}

void shm_link_free(struct shm_link *link)
{
    struct shm_endpoint *endpoint = link->endpoint;

    detach_link(link);
    shm_controls_discard(link);
    shm_bounce_reclaim(link);
    if (ofp_list_linked(&link->busy))
        ofp_list_remove(&link->busy);
    if (ofp_list_linked(&link->wake))
        ofp_list_remove(&link->wake);
    /* A link to itself uses the endpoint's own mapping. */
    if (link->segment.base != endpoint->segment.base)
        shm_segment_unmap(&link->segment);
    if (link->process)
        shm_process_release(link->process);
    OFP_CHECK(endpoint->links[link->number] == link);
    endpoint->links[link->number] = NULL;
    /* The watched slot may name this link. */
    endpoint->suspect = 0;
    /* All slots that the peer ever claimed come before this position. */
    endpoint->retired_at[link->number] = endpoint->head + (UINT64_C(1) << endpoint->ring.shift);
    OFP_CHECK(link->bounce_used == 0 && link->fragments_used == 0);
    free(link->costs);
    free(link->stores);
    free(link);
}

void shm_link_report_up(struct shm_link *link)
{
    link->peer->incarnation = link->segment.incarnation;
    /* shm_connection_identify has compared the user that the kernel reports for the peer's process. */
    link->peer->proven = true;
    ofp_peer_up(link->peer);
}

void shm_peer_report_up(struct ofp_peer *peer)
{
    struct shm_link *link = shm_link_of(peer);

    OFP_CHECK(link->number_there && link->met.state == OFPI_MEET_UP);
    link->up = link->ready = true;
    shm_link_report_up(link);
}

/* End a draining link of which no slot is left in the ring. */
static void end_drained_link(struct shm_link *link)
{
    static const char *const ends[] = {
        [SHM_END_DEAD] = "is dead",
        [SHM_END_CLOSED] = "is closed",
        [SHM_END_RENEWED] = "gave up its shared memory, which was damaged, and is met anew",
    };
    char address[OFP_TEXT_MAX / 2] = "", text[OFP_TEXT_MAX];
    bool gone = link->end != SHM_END_RENEWED;

    OFP_CHECK(link->draining && !link->up && !link->ready);
    if (link->peer) {
        shm_address_format(link->peer->address, link->peer->address_length, address, sizeof(address));
        snprintf(text, sizeof(text), "%s %s", address, ends[link->end]);
        ofpi_meeting_drained(
            link->endpoint->upper->meeting, link->peer,
            &(struct ofpi_meeting_end){.error = gone ? OFP_EPEERLOST : ECONNRESET, .process_gone = gone, .text = text});
    }
    shm_link_free(link);
}

/* Free a link that was dropped here, after both GOODBYEs: neither side writes any more. */
static bool free_link_after_goodbyes(struct shm_link *link)
{
    if (link->peer || link->draining || !link->goodbye_sent || !link->goodbye_received)
        return false;
    shm_link_free(link);
    return true;
}

void shm_link_mark_lost(struct shm_link *link, int error, bool process_gone, const char *text)
{
    shm_link_report_end(link, false,
                        &(struct ofpi_meeting_end){.error = error, .process_gone = process_gone, .text = text});
}

void shm_link_fail_protocol(struct shm_link *link, const char *what)
{
    char address[OFP_TEXT_MAX / 2] = "", text[OFP_TEXT_MAX];

    link->endpoint->protocol_errors++;
    if (link->draining || !link->peer)
        return;
    shm_address_format(link->peer->address, link->peer->address_length, address, sizeof(address));
    snprintf(text, sizeof(text), "%s broke the protocol: %s", address, what);
    shm_link_mark_lost(link, EPROTO, false, text);
}

void shm_goodbye_arrived(struct shm_link *link, bool ended)
{
    link->goodbye_received = true;
    if (ended) {
        /* GOODBYE is the last slot, so all earlier ones have been read. */
        shm_link_mark_ended(link, SHM_END_CLOSED);
        end_drained_link(link);
        return;
    }
    /* The peer dropped this connection and continues: it waits for our GOODBYE. */
    if (link->peer && !link->draining)
        shm_link_mark_lost(link, ECONNRESET, false, "the peer dropped the connection");
    else
        free_link_after_goodbyes(link);
}

void shm_peer_close(struct ofp_peer *peer)
{
    struct shm_link *link = shm_link_of(peer);

    if (!link)
        return;
    detach_link(link);
    /* The peer of an accepted call may have mapped the ring: the next answer of the peer belongs to another link. */
    if (link->process)
        shm_link_mark_ended(link, SHM_END_CLOSED);
    else
        shm_link_free(link);
}

void shm_link_disconnect(struct ofp_peer *peer)
{
    struct shm_link *link = shm_link_of(peer);

    if (!link)
        return;
    detach_link(link);
    if (link->draining)
        return;
    if (!link->process || link->process == &link->endpoint->domain->self) {
        shm_link_free(link);
        return;
    }
    shm_control_send(link, SHM_GOODBYE, 0, &(struct shm_control_fields){0});
    free_link_after_goodbyes(link);
}

/* -------------------------------------------------------------------------------------------------------- progress */

/* Free slots at the head that the peer of a draining link claimed and will never publish. */
static int free_dead_slots(struct shm_endpoint *endpoint)
{
    int skipped = 0;

    for (;; skipped++) {
        uint64_t state = shm_ring_peek(&endpoint->ring, endpoint->head);
        struct shm_link *owner = shm_link_find(endpoint, shm_slot_owner_of(state));

        if (!shm_ring_is_claimed(&endpoint->ring, endpoint->head, state) || !owner || !owner->draining)
            return skipped;
        shm_ring_free(&endpoint->ring, endpoint->head++);
    }
}

/* Whether controls wait for space in a ring that its owner no longer reads. */
static bool is_link_unread(const struct shm_link *link)
{
    return !ofp_list_empty(&link->controls) && ofp_load_relaxed(&link->ring.header->status) & SHM_CLOSED;
}

/* The peer's status word said that it closes: wait until it says that the peer is closed. */
static void progress_closing_link(struct shm_link *link)
{
    uint64_t status = ofp_load_acquire(&link->ring.header->status);

    if (status & ~SHM_STATUS_BITS || (status & (SHM_CLOSING | SHM_CLOSED)) == SHM_CLOSING) {
        /* The owner repairs a damaged status word itself. */
        shm_retry_schedule(link->endpoint);
    } else if (status & SHM_CLOSED) {
        shm_link_mark_ended(link, status & SHM_RENEWED ? SHM_END_RENEWED : SHM_END_CLOSED);
    } else {
        /* No owner clears SHM_CLOSING: the word had been overwritten. */
        link->closing = false;
        shm_link_mark_lost(link, ECONNRESET, false, "its status word was damaged");
    }
}

int shm_links_progress(struct shm_endpoint *endpoint)
{
    struct ofp_list *node, *following;
    int events = free_dead_slots(endpoint);

    OFP_LIST_EACH(node, following, &endpoint->busy) {
        struct shm_link *link = OFP_CONTAINER_OF(node, struct shm_link, busy);

        if (link->draining) {
            if (endpoint->head < link->drain_until)
                continue;
            end_drained_link(link);
            events++;
        } else if (link->closing || is_link_unread(link)) {
            progress_closing_link(link);
        } else if (shm_controls_flush(link)) {
            ofp_list_remove(&link->busy);
            free_link_after_goodbyes(link);
            events++;
        }
    }
    if (ofp_list_empty(&endpoint->busy))
        endpoint->work &= ~(uint32_t)SHM_WORK_LINKS;
    return events;
}

/* --------------------------------------------------------------------------------------------------------- renewal */

void shm_links_disconnect(struct shm_endpoint *endpoint)
{
    for (uint32_t i = 1; i < endpoint->link_capacity; i++) {
        struct shm_link *link = endpoint->links[i];

        if (link && link->draining) {
            end_drained_link(link);
        } else if (link && link->process && link->met.state != OFPI_MEET_ACCEPTED) {
            /* The peer writes to a ring that is not read any more: its GOODBYE is not awaited. */
            link->goodbye_received = true;
            if (!free_link_after_goodbyes(link))
                shm_link_mark_lost(link, ECONNRESET, false, "the shared memory of this endpoint was damaged");
        }
    }
}

void shm_links_connect_again(struct shm_endpoint *endpoint)
{
    for (uint32_t i = 1; i < endpoint->link_capacity; i++) {
        struct shm_link *link = endpoint->links[i];

        /* The peer got the old segment in its HELLO or WELCOME: start again with the new one. */
        if (link && link->met.state == OFPI_MEET_ACCEPTED)
            shm_link_report_end(link, false, &(struct ofpi_meeting_end){.unsure = true});
        else if (link && !link->process)
            shm_link_report_end(link, false, &(struct ofpi_meeting_end){.error = ETIMEDOUT, .deferred = true});
    }
}

/* --------------------------------------------------------------------------------------------------------- connect */

static const char *describe_error(int error)
{
    switch (error) {
    case EACCES:
        return "another user has the name";
    case EAGAIN:
    case ETIMEDOUT:
        return "it did not answer in time; does its program make progress?";
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS:
        return "out of descriptors; raise the limit of open files (ulimit -n)";
    default:
        return strerror(error);
    }
}

void shm_failure_describe(const struct ofp_peer *peer, int error, const char *why, char *text, size_t text_size)
{
    char address[OFP_TEXT_MAX / 2] = "", absence[OFP_TEXT_MAX / 2];

    shm_address_format(peer->address, peer->address_length, address, sizeof(address));
    if (!why && error == ECONNREFUSED) {
        shm_address_describe_absence(peer->address, absence, sizeof(absence));
        why = absence;
    }
    snprintf(text, text_size, "%s: %.240s", address, why ? why : describe_error(error));
}

/* An endpoint connects to itself without a meeting. */
static int connect_self(struct shm_link *link)
{
    struct shm_endpoint *endpoint = link->endpoint;

    link->segment = endpoint->segment;
    link->ring = endpoint->ring;
    link->number_there = link->number;
    link->stamp_out = link->stamp_in;
    link->process = &endpoint->domain->self;
    link->process->uses++;
    link->probe_address = (uint64_t)(uintptr_t)&endpoint->incarnation;
    link->attach = endpoint->domain->attach;
    return OFPI_MEETING_CONFIRMED;
}

int shm_peer_call(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(peer->endpoint);
    struct shm_link *link = shm_link_create(endpoint, peer);
    int result;

    if (!link)
        return -ENOMEM;
    if (memcmp(peer->address, &endpoint->address, sizeof(endpoint->address)) == 0)
        return connect_self(link);
    result = shm_meeting_start(link);
    if (!result)
        return 0;
    shm_failure_describe(peer, -result, NULL, text, text_size);
    shm_link_free(link);
    return result;
}

int shm_link_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(peer->endpoint);
    struct shm_address address;
    int result;

    if (shm_address_check(peer->address, peer->address_length) != 0) {
        snprintf(text, text_size, "this is not an address of shm");
        return -EINVAL;
    }
    memcpy(&address, peer->address, sizeof(address));
    result = shm_address_check_host(endpoint->address.host, &address, text, text_size);
    if (result)
        return result;
    if (address.uid != endpoint->address.uid) {
        snprintf(text, text_size, "the peer %s belongs to user %u: shm reaches processes of the same user only",
                 address.name, address.uid);
        return -EACCES;
    }
    return ofpi_meeting_start(endpoint->upper->meeting, peer, text, text_size);
}
