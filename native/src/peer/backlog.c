/* SPDX-License-Identifier: BSD-3-Clause */
/* The backlog of a peer: fences and delays that stop it, and the rounds of progress that resume it. */
#include "peer/backlog.h"

#include "base/check.h"
#include "base/timer.h"

void ofpi_backlog_schedule(struct ofpi_peer *peer)
{
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);

    if (ofp_list_empty(&peer->backlog) || ofp_list_linked(&peer->node) || peer->fenced || peer->delay.position)
        return;
    OFPI_CHECK(ofpi_domain_is_held(endpoint->domain) && endpoint->backlog_count);
    ofp_list_append(&endpoint->backlogged, &peer->node);
    /* A sleeping thread has no deadline for this backlog yet: arm the endpoints again. */
    endpoint->domain->endpoints_armed = false;
}

bool ofpi_backlog_is_behind_fence(const struct ofpi_peer *peer, const struct ofp_operation *op)
{
    return op->flags & OFP_FENCE && peer->sending && peer->base.endpoint->info->emulated_caps & OFP_CAP_FENCE;
}

static const struct ofp_pending *head_of_backlog(const struct ofpi_peer *peer)
{
    return OFP_CONTAINER_OF(peer->backlog.next, const struct ofp_pending, node);
}

void ofpi_peer_fence_update(struct ofpi_peer *peer)
{
    if (!ofp_list_empty(&peer->backlog) && ofpi_backlog_is_behind_fence(peer, &head_of_backlog(peer)->operation))
        return;
    OFPI_CHECK(!peer->fenced || !ofp_list_linked(&peer->node));
    peer->fenced = false;
    ofpi_backlog_schedule(peer);
}

void ofpi_backlog_delay_end(struct ofpi_peer *peer)
{
    ofpi_timers_stop(&ofpi_endpoint_of_peer(&peer->base)->domain->timers, &peer->delay);
    ofpi_backlog_schedule(peer);
}

void ofpi_backlog_delay_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    ofpi_backlog_delay_end(OFP_CONTAINER_OF(timer, struct ofpi_peer, delay));
}
