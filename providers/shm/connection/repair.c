/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damage to our own segment. Every process that we have met may write it, by mistake as well: one stray pointer there must
 * not leave this endpoint unreachable for all others.
 *
 * What only we know is compared with what stands there: the constants, the bits of the status word that are ours, the states
 * that a slot at the head may have, how far the hint may be. A hint is put right. Everything else may have been believed by
 * somebody, or is still written by a process that is held up, so the segment is given up for a fresh one, which peers get when
 * they meet this endpoint anew.
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
/* No hint falls so far back, and one that has is soon taken for one ahead. */
#define LAG_LIMIT (INT64_C(1) << 32)

/* ---------------------------------------------------------------------------------------------------- a claimed slot */

/*
 * A peer that reads its ring is not between a claim and its publishing, since both happen within one call into its domain. So
 * once it has freed a slot of ours, it holds none that was claimed before.
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

/* And has not published meanwhile, which it did before (acquire pairs with its shm_ring_free). */
static bool has_owner_read(const struct shm_endpoint *endpoint)
{
    return endpoint->suspect_probe &&
           ofp_load_acquire(&endpoint->suspect_probe->state) != endpoint->suspect_probe_state &&
           shm_ring_peek(&endpoint->ring, endpoint->head) == endpoint->suspect_state;
}

/* The slot at the head stays claimed. What is wrong with that; NULL: nothing yet. */
static const char *check_claimed_slot(struct shm_endpoint *endpoint, uint64_t state)
{
    struct shm_link *link = shm_link_find(endpoint, shm_slot_owner_of(state));
    uint64_t now = shm_core->now();

    /* Skipped soon: lifecycle.c. */
    if (link && link->state == OFPI_MEET_DRAINING)
        return NULL;
    if (endpoint->suspect != endpoint->head + 1 || endpoint->suspect_state != state) {
        endpoint->suspect = endpoint->head + 1;
        endpoint->suspect_state = state;
        endpoint->suspect_since = now;
        endpoint->suspect_probe = NULL;
    }
    if (!link || !link->process)
        return now - endpoint->suspect_since > SHM_SUSPICION ? "a slot is claimed by nobody known" : NULL;
    /* All endpoints of our domain share the lock that we hold. */
    if (link->process == &endpoint->domain->self || has_owner_read(endpoint))
        return "a slot is claimed in the name of a peer that does not hold it";
    if (!endpoint->suspect_probe && link->up)
        probe_slot_owner(endpoint, link);
    return now - endpoint->suspect_since > SHM_CLAIM_PATIENCE ? "a slot was claimed and is not filled" : NULL;
}

static const char impossible[] = "the state of a slot is none that there can be";

/* Of a position that is the next for its slot. */
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

/* The others: nobody gets past one that is damaged, from whatever side. Many lines, so not at every look. */
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
 * A hint ahead of the first free position makes senders believe that the ring is full, or leaves a hole that stops us. Before
 * anybody has claimed a slot by it, it is enough to put it right.
 */
static const char *repair_tail(struct shm_endpoint *endpoint)
{
    const struct shm_ring *ring = &endpoint->ring;
    uint64_t tail = ofp_load_acquire(&ring->header->tail), end = shm_ring_find_end(ring, endpoint->head);
    /* As senders compare: laps have 32 bits. */
    int64_t ahead = (int64_t)((tail - end) << (32 - ring->shift)) >> (32 - ring->shift);

    if (ahead <= 0 && ahead > -LAG_LIMIT)
        return NULL;
    for (uint64_t position = end; ahead > 0 && position != endpoint->head + (UINT64_C(1) << ring->shift); position++)
        if (shm_ring_is_occupied(ring, position))
            return "slots behind a free one are taken";
    endpoint->protocol_errors++;
    /* Who has read it and claims only now leaves a hole, which the next look finds. */
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

        /* An answer that has yet to be read comes behind whatever is missing now. */
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

/* The fresh segment takes the place of the one that was given up. Nobody has links to it, but those that say farewell. */
static void store_fresh_segment(struct shm_endpoint *endpoint, const struct shm_segment *fresh, int fd)
{
    shm_bounce_clear(endpoint);
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
    /* As when an endpoint closes: who reads or writes our memory looks at it when done, or before. */
    ofp_publish(&endpoint->ring.header->status, SHM_CLOSING | SHM_RENEWED);
    shm_visitors_wait(endpoint, now + VISITOR_PATIENCE);
    shm_links_disconnect(endpoint);
    ofp_publish(&endpoint->ring.header->status, SHM_CLOSING | SHM_RENEWED | SHM_CLOSED);
    store_fresh_segment(endpoint, &fresh, fd);
    shm_links_connect_again(endpoint);
}
