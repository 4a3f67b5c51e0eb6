/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory is polled in every round, because that reads one word. A network is polled in every round while it is
 * busy, because its answers are awaited. A quiet network is polled by the clock, because each poll costs a system
 * call, as much as fifty polls of memory.
 */
#include "link/link_progress.h"

#include "base/ticks.h"
#include "object/domain.h"
#include "base/check.h"

/*
 * Ticks of the processor. A network stays busy for this time after it has moved something: longer than an answer
 * takes.
 */
#define BUSY_TICKS 250000
/* Ticks between two polls of a quiet network: about fifty microseconds. */
#define LEFT_TICKS 125000

void link_endpoint_mark_busy(struct link_endpoint *endpoint)
{
    endpoint->busy_until = ofpi_ticks_read() + BUSY_TICKS;
    endpoint->next_poll = 0;
}

static int progress_inner(struct link_inner *inner) { return inner->base.ops->progress(&inner->base); }

static int progress_networks(struct link_endpoint *endpoint, uint64_t now)
{
    int events = 0;

    for (uint32_t i = endpoint->near_count; i < endpoint->set->count; i++)
        events += progress_inner(endpoint->inners[i]);
    endpoint->next_poll = now < endpoint->busy_until ? 0 : now + LEFT_TICKS;
    if (events)
        link_endpoint_mark_busy(endpoint);
    return events;
}

static int progress_all_inner(struct link_endpoint *endpoint, uint64_t now)
{
    int events = 0;

    for (uint32_t i = 0; i < endpoint->near_count; i++)
        events += progress_inner(endpoint->inners[i]);
    return now < endpoint->next_poll ? events : events + progress_networks(endpoint, now);
}

int link_endpoint_progress(struct ofp_endpoint *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of(outer);
    uint64_t now = ((const struct ofpi_domain *)outer->domain)->round_ticks;

    OFPI_CHECK(ofpi_domain_is_held((struct ofpi_domain *)outer->domain) &&
               endpoint->near_count <= endpoint->set->count);
    /* The common case of a program whose peers are all on this host: one jump more than without link. */
    if (__builtin_expect(endpoint->near_count == 1 && now < endpoint->next_poll, 1))
        return progress_inner(endpoint->inners[0]);
    return progress_all_inner(endpoint, now);
}

/* Poll the networks in the next round. */
static void schedule_networks(struct link_endpoint *endpoint) { endpoint->next_poll = 0; }

bool link_endpoint_arm(struct ofp_endpoint *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of(outer);

    for (uint32_t i = 0; i < endpoint->set->count; i++) {
        struct ofp_endpoint *inner = &endpoint->inners[i]->base;

        if (inner->ops->arm(inner))
            continue;
        schedule_networks(endpoint);
        return false;
    }
    return true;
}

void link_endpoint_disarm(struct ofp_endpoint *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of(outer);

    /* The woken thread does not know which descriptor woke it: poll all. */
    schedule_networks(endpoint);
    for (uint32_t i = 0; i < endpoint->set->count; i++)
        endpoint->inners[i]->base.ops->disarm(&endpoint->inners[i]->base);
}
