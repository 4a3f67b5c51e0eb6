/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damage to the own segment. Every process that has it mapped may write it, by mistake as well: one stray pointer there must
 * not make this endpoint unreachable for all other peers.
 *
 * What only this process knows is compared with the segment: the constants, our own bits of the status word, the possible
 * states of a slot at the head, the range of the hint. A wrong hint is corrected. Any other damaged value may already have been
 * used by a peer, or may still be written by a process that is stopped, so the segment is replaced by a new one, which peers get
 * when they connect again. Called by progress and by the sleep handshake, under the domain's lock.
 */
#include "connection/repair.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/random.h"
#include "connection/lifecycle.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/link.h"
#include "link/publish.h"
#include "link/table.h"
#include "memory/segment.h"

#define VISITOR_PATIENCE UINT64_C(2000000000)
#define REPLACE_PAUSE UINT64_C(1000000000)
/* A valid hint never falls this far back; a hint that does counts as one ahead. */
#define LAG_LIMIT (INT64_C(1) << 32)

/* ---------------------------------------------------------------------------------------------------- a claimed slot */

/*
 * A peer that reads its ring is not between a claim and its publication, since both happen within one call into its
 * domain. So a peer that has freed a probe slot of ours has no earlier claim left.
 */
static void probe_slot_owner(struct shm_endpoint *endpoint, struct shm_link *link)
{
    struct shm_slot *slot = shm_ring_claim(&link->ring, link->number_there, &endpoint->suspect_probe_state);

    if (!slot)
        return;
    slot->content.kind = SHM_NOTHING;
    shm_slot_publish(link, slot, endpoint->suspect_probe_state);
    endpoint->suspect_probe = slot;
}

/*
 * Whether the peer has freed the probe and the claimed slot is unchanged (acquire pairs with the peer's shm_ring_free).
 */
static bool has_owner_read(const struct shm_endpoint *endpoint)
{
    return endpoint->suspect_probe &&
           ofp_load_acquire(&endpoint->suspect_probe->state) != endpoint->suspect_probe_state &&
           shm_ring_peek(&endpoint->ring, endpoint->head) == endpoint->suspect_state;
}

/* The slot at the head stays claimed. Returns the damage; NULL: none yet. */
static const char *check_claimed_slot(struct shm_endpoint *endpoint, uint64_t state)
{
    struct shm_link *link = shm_link_find(endpoint, shm_slot_owner_of(state));
    uint64_t now = shm_core->now();

    /* Freed soon: lifecycle.c. */
    if (link && link->draining)
        return NULL;
    if (endpoint->suspect != endpoint->head + 1 || endpoint->suspect_state != state) {
        endpoint->suspect = endpoint->head + 1;
        endpoint->suspect_state = state;
        endpoint->suspect_since = now;
        endpoint->suspect_probe = NULL;
    }
    if (!link || !link->process)
        return now - endpoint->suspect_since > SHM_SUSPICION ? "a slot is claimed by nobody known" : NULL;
    /* All endpoints of the domain share the lock that is held now. */
    if (link->process == &endpoint->domain->self || has_owner_read(endpoint))
        return "a slot is claimed in the name of a peer that does not hold it";
    if (!endpoint->suspect_probe && link->up)
        probe_slot_owner(endpoint, link);
    return now - endpoint->suspect_since > SHM_CLAIM_PATIENCE ? "a slot was claimed and is not filled" : NULL;
}

static const char impossible[] = "the state of a slot is none that there can be";

/* `position` is the next one of its slot. */
static bool is_state_possible(const struct shm_ring *ring, uint64_t position)
{
    uint64_t state = shm_ring_peek(ring, position);

    return state == shm_state_build(position >> ring->shift, 0, SHM_FREE) ||
           shm_ring_is_claimed(ring, position, state) || shm_ring_is_ready(ring, position, state);
}

bool shm_head_repair(struct shm_endpoint *endpoint)
{
    uint64_t lap = endpoint->head >> endpoint->ring.shift, state = shm_ring_peek(&endpoint->ring, endpoint->head);
    const char *damage = impossible;

    if (state == shm_state_build(lap, 0, SHM_FREE) || shm_ring_is_ready(&endpoint->ring, endpoint->head, state))
        return true;
    if (shm_ring_is_claimed(&endpoint->ring, endpoint->head, state))
        damage = check_claimed_slot(endpoint, state);
    if (damage)
        shm_segment_replace(endpoint, damage);
    return false;
}

/*
 * Check the other slots: senders and the reader stop at a damaged one. This reads many cache lines, so it happens only
 * once per SHM_LOOK_PAUSE.
 */
static const char *check_slots(struct shm_endpoint *endpoint)
{
    uint64_t now = shm_core->now();

    if (now - endpoint->slots_checked < SHM_LOOK_PAUSE)
        return NULL;
    endpoint->slots_checked = now;
    for (uint64_t i = 0; i < UINT64_C(1) << endpoint->ring.shift; i++)
        if (!is_state_possible(&endpoint->ring, endpoint->head + i))
            return impossible;
    return NULL;
}

/* -------------------------------------------------------------------------------------------------------- the header */

uint64_t shm_status_compute(const struct shm_endpoint *endpoint)
{
    return (endpoint->base->remote_events ? SHM_EVENTS : 0) | (endpoint->work & SHM_WORK_ANNOUNCE ? SHM_ANNOUNCE : 0);
}

/*
 * A hint ahead of the first free position makes senders believe that the ring is full, or leaves a gap at which the
 * reader stops. While no slot was claimed by the wrong hint, correcting the hint is enough.
 */
static const char *repair_tail(struct shm_endpoint *endpoint)
{
    const struct shm_ring *ring = &endpoint->ring;
    uint64_t tail = ofp_load_acquire(&ring->header->tail), end = shm_ring_find_end(ring, endpoint->head);
    /* The comparison of the senders: laps have 32 bits. */
    int64_t ahead = (int64_t)((tail - end) << (32 - ring->shift)) >> (32 - ring->shift);

    if (ahead <= 0 && ahead > -LAG_LIMIT)
        return NULL;
    for (uint64_t position = end; ahead > 0 && position != endpoint->head + (UINT64_C(1) << ring->shift); position++)
        if (shm_ring_is_occupied(ring, position))
            return "slots behind a free one are taken";
    endpoint->protocol_errors++;
    /* A sender that has read the wrong hint and claims later leaves a gap, which the next check finds. */
    if (ofp_claim(&ring->header->tail, &tail, end))
        shm_core->log(
            OFP_LOG_WARNING, SHM_NAME,
            "endpoint %u: the hint to the end of its ring was overwritten by a process that has it mapped, and "
            "is put right",
            endpoint->base->id);
    return NULL;
}

void shm_segment_repair(struct shm_endpoint *endpoint)
{
    uint64_t status = ofp_load_relaxed(&endpoint->ring.header->status);
    const char *damage;

    if (!shm_segment_is_whole(&endpoint->segment))
        damage = "the head of its segment was overwritten";
    else if ((status & ~SHM_SLEEPING) != shm_status_compute(endpoint))
        damage = "its status word was overwritten";
    else if (!shm_head_repair(endpoint))
        return;
    else
        damage = check_slots(endpoint);
    if (!damage)
        damage = repair_tail(endpoint);
    if (damage)
        shm_segment_replace(endpoint, damage);
    else
        shm_bounce_repair(endpoint);
}

/* ---------------------------------------------------------------------------------------------------------- missing slots */

void shm_links_probe(struct shm_endpoint *endpoint)
{
    endpoint->work &= ~(uint32_t)SHM_WORK_PROBE;
    for (uint32_t i = 1; i < endpoint->link_capacity; i++) {
        struct shm_link *link = endpoint->links[i];

        /* An ECHO that is still to be read comes behind all slots that are missing now. */
        if (!link || !link->up || link->probe)
            continue;
        link->probe = shm_random_read();
        shm_control_send(link, SHM_PROBE, 0, &(struct shm_control_fields){.id = link->probe});
    }
}

void shm_probe_failed(struct shm_link *link)
{
    char address[OFP_TEXT_MAX / 2] = "", text[OFP_TEXT_MAX];

    link->endpoint->protocol_errors++;
    if (!link->up)
        return;
    shm_address_format(link->peer->address, link->peer->address_length, address, sizeof(address));
    snprintf(text, sizeof(text), "slots that %s filled were overwritten by another process", address);
    shm_core->log(OFP_LOG_WARNING, SHM_NAME, "endpoint %u: %s: it is met anew", link->endpoint->base->id, text);
    shm_link_mark_lost(link, ECONNRESET, false, text);
}

/* ---------------------------------------------------------------------------------------------------------- renewal */

/* The new segment replaces the old one. Only links that send GOODBYE still use the old one. */
static void store_fresh_segment(struct shm_endpoint *endpoint, const struct shm_segment *fresh, int fd)
{
    shm_bounce_clear(endpoint);
    OFP_CHECK(endpoint->bounce.free_count == endpoint->segment.bounce_count);
    shm_segment_unmap(&endpoint->segment);
    close(endpoint->segment_fd);
    endpoint->segment = *fresh;
    endpoint->segment_fd = fd;
    endpoint->ring = (struct shm_ring){fresh->header, fresh->slots, fresh->slot_shift};
    endpoint->head = 0;
    endpoint->stalled = false;
    memset(endpoint->retired_at, 0, endpoint->link_capacity * sizeof(*endpoint->retired_at));
    endpoint->suspect = 0;
    ofp_publish(&endpoint->ring.header->status, shm_status_compute(endpoint) | (endpoint->armed ? SHM_SLEEPING : 0));
}

void shm_segment_replace(struct shm_endpoint *endpoint, const char *why)
{
    const struct shm_segment *old = &endpoint->segment;
    uint64_t now = shm_core->now();
    char text[OFP_TEXT_MAX] = "";
    struct shm_segment fresh;
    int fd;

    if (now < endpoint->replace_again)
        return;
    endpoint->protocol_errors++;
    if (shm_segment_create(&fresh, old->slot_shift, old->bounce_size, old->bounce_count, old->incarnation,
                           old->identity, &fd, text, sizeof(text)) != 0) {
        shm_core->log(OFP_LOG_ERROR, SHM_NAME, "endpoint %u is out of reach: %s, and there is no other: %s",
                      endpoint->base->id, why, text);
        endpoint->replace_again = now + REPLACE_PAUSE;
        return;
    }
    shm_core->log(
        OFP_LOG_WARNING, SHM_NAME,
        "endpoint %u: %s; a process that has its memory mapped writes where it should not. The endpoint goes on "
        "with fresh memory, and peers meet it anew",
        endpoint->base->id, why);
    endpoint->upper->drain_ring(endpoint);
    /* As when an endpoint closes: a peer checks this status after it has read our memory, or before it writes. */
    ofp_publish(&endpoint->ring.header->status, SHM_CLOSING | SHM_RENEWED);
    shm_visitors_wait(endpoint, now + VISITOR_PATIENCE);
    shm_links_disconnect(endpoint);
    ofp_publish(&endpoint->ring.header->status, SHM_CLOSING | SHM_RENEWED | SHM_CLOSED);
    store_fresh_segment(endpoint, &fresh, fd);
    shm_links_connect_again(endpoint);
}
