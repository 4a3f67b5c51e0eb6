/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory is looked at in every round, since that is a read of one word. A network is asked in every round while it is busy,
 * since its answers are awaited. One that was quiet is asked by the clock, since that costs a system call, as much as fifty looks
 * at memory.
 */
#include "link/link_progress.h"

#include "base/ticks.h"
#include "object/domain.h"

/* In ticks of the processor's clock. How long a network is busy after it has moved something: longer than an answer takes. */
#define BUSY_TICKS 250000
/* How long one that is quiet is left alone: some fifty microseconds. */
#define LEFT_TICKS 125000

void link_progress_busy(struct link_endpoint *endpoint)
{
    endpoint->busy_until = ofpi_ticks_read() + BUSY_TICKS;
    endpoint->ask_at = 0;
}

static int ask(struct link_inner *inner) { return inner->base.ops->progress(&inner->base); }

static int ask_networks(struct link_endpoint *endpoint, uint64_t now)
{
    int events = 0;

    for (uint32_t i = endpoint->near_count; i < endpoint->set->count; i++)
        events += ask(endpoint->asked[i]);
    endpoint->ask_at = now < endpoint->busy_until ? 0 : now + LEFT_TICKS;
    if (events)
        link_progress_busy(endpoint);
    return events;
}

static int progress_all(struct link_endpoint *endpoint, uint64_t now)
{
    int events = 0;

    for (uint32_t i = 0; i < endpoint->near_count; i++)
        events += ask(endpoint->asked[i]);
    return now < endpoint->ask_at ? events : events + ask_networks(endpoint, now);
}

int link_progress(struct ofp_endpoint *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of(outer);
    uint64_t now = ((const struct ofpi_domain *)outer->domain)->round_ticks;

    /* Nearly every round of a program that talks to neighbours: one jump more than without link. */
    if (__builtin_expect(endpoint->near_count == 1 && now < endpoint->ask_at, 1))
        return ask(endpoint->asked[0]);
    return progress_all(endpoint, now);
}

/* The next round asks all. */
static void ask_soon(struct link_endpoint *endpoint) { endpoint->ask_at = 0; }

bool link_arm(struct ofp_endpoint *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of(outer);

    for (uint32_t i = 0; i < endpoint->set->count; i++) {
        struct ofp_endpoint *inner = &endpoint->asked[i]->base;

        if (inner->ops->arm(inner))
            continue;
        ask_soon(endpoint);
        return false;
    }
    return true;
}

void link_disarm(struct ofp_endpoint *outer)
{
    struct link_endpoint *endpoint = link_endpoint_of(outer);

    /* Who was woken does not know by whom. */
    ask_soon(endpoint);
    for (uint32_t i = 0; i < endpoint->set->count; i++)
        endpoint->asked[i]->base.ops->disarm(&endpoint->asked[i]->base);
}
