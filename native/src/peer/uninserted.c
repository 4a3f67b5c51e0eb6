/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer/uninserted.h"

#include "base/address_vector.h"
#include "base/check.h"
#include "base/clock.h"
#include "object/vector.h"
#include "progress/progress.h"

/* Uninserted peers that become idle beyond the bound before some are freed, and how many are looked at for each. */
#define BATCH 64u
#define TURNS 4u

/*
 * Free peers from a timer, since the caller may be a provider that still uses this one. Without memory for the timer the
 * next one that becomes idle tries again.
 */
static void schedule_forgetting(struct ofpi_endpoint *endpoint)
{
    if (endpoint->idle_uninserted_count <= OFPI_UNINSERTED_LIMIT || endpoint->closing)
        return;
    endpoint->forget_turns += TURNS;
    if (endpoint->forget_turns < BATCH * TURNS || endpoint->forgetting.position)
        return;
    endpoint->forgetting.deadline = ofpi_clock_read();
    ofpi_timer_start(endpoint->domain, &endpoint->forgetting);
}

static void append_idle_peer(struct ofpi_peer *peer)
{
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);

    ofp_list_append(&endpoint->idle_uninserted, &peer->idle);
    endpoint->idle_uninserted_count++;
}

static void remove_idle_peer(struct ofpi_peer *peer)
{
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);

    if (!ofp_list_linked(&peer->idle))
        return;
    OFPI_CHECK(endpoint->idle_uninserted_count);
    ofp_list_remove(&peer->idle);
    endpoint->idle_uninserted_count--;
}

void ofpi_uninserted_mark(struct ofpi_peer *peer)
{
    OFPI_CHECK(!peer->uninserted && !ofp_list_linked(&peer->idle));
    peer->uninserted = true;
    ofpi_uninserted_update(peer);
}

void ofpi_uninserted_clear(struct ofpi_peer *peer)
{
    remove_idle_peer(peer);
    peer->uninserted = false;
}

void ofpi_uninserted_acquire(struct ofpi_endpoint *endpoint, uint32_t index)
{
    struct ofpi_peer *peer = ofpi_peer_find_at(endpoint, index);

    if (endpoint->av)
        ofpi_av_table_mark_caller(endpoint->av->table, index, false);
    if (peer)
        ofpi_uninserted_clear(peer);
}

void ofpi_uninserted_update(struct ofpi_peer *peer)
{
    bool is_idle = peer->base.state == OFP_PEER_UNUSED || peer->base.state == OFP_PEER_LOST;

    OFPI_CHECK(peer->uninserted);
    remove_idle_peer(peer);
    if (!is_idle)
        return;
    append_idle_peer(peer);
    schedule_forgetting(ofpi_endpoint_of_peer(&peer->base));
}

void ofpi_uninserted_defer(struct ofpi_peer *peer)
{
    remove_idle_peer(peer);
    append_idle_peer(peer);
}
