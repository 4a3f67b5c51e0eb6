/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core decides by queues of its own, so their lengths are copied into the page, when progress asks the kernel and
 * before a thread sleeps: every 40 to 100 µs while threads poll. The levels of a domain with many endpoints are written
 * ten times a second, because they would cost more than the progress itself.
 */
#include "progress/levels.h"

#include "base/clock.h"
#include "base/ticks.h"
#include "match/receive_context.h"

#define FEW_ENDPOINTS 16
/* Between two writes of many endpoints: 100 ms at 2 GHz. */
#define MANY_TICKS 200000000

static uint64_t compute_share(uint64_t total, uint64_t *divided)
{
    uint64_t share = total - *divided;

    *divided = total;
    return share;
}

void ofpi_levels_write(struct ofpi_endpoint *endpoint)
{
    struct ofpi_domain *domain = endpoint->domain;
    struct ofpi_levels *levels = &ofpi_page_entry_find(endpoint->counts)->levels, *divided = &domain->divided;
    struct ofpi_receive_context_statistics receive = {0};

    if (endpoint->receive_context)
        ofpi_receive_context_statistics(endpoint->receive_context, &receive);
    levels->posted_receives = receive.posted_receives;
    levels->unexpected_messages = receive.unexpected_messages;
    levels->unexpected_bytes = receive.unexpected_bytes;
    levels->announced_messages = receive.announced_messages;
    levels->linear_searches = receive.linear_searches;
    levels->backlog = endpoint->backlog_count;
    levels->pending = endpoint->in_flight;
    levels->sleeps += compute_share(domain->sleeps, &divided->sleeps);
    levels->wakeups += compute_share(domain->wakeups, &divided->wakeups);
    levels->progress_calls += compute_share(ofp_load_relaxed(&domain->progress_count), &divided->progress_calls);
    levels->registrations += compute_share(domain->base.registrations, &divided->registrations);
    levels->registrations_reused += compute_share(domain->base.registrations_reused, &divided->registrations_reused);
    levels->registrations_dropped += compute_share(domain->base.registrations_dropped, &divided->registrations_dropped);
    levels->packet_buffers_reclaimed +=
        compute_share(domain->base.packet_buffers_reclaimed, &divided->packet_buffers_reclaimed);
    /* The number of packet buffers goes down, too, so it cannot be divided. */
    levels->packet_buffers = domain->endpoints.next == &endpoint->node ? domain->base.packet_buffers : 0;
}

void ofpi_domain_levels_write(struct ofpi_domain *domain)
{
    uint64_t ticks = ofpi_ticks_read(), now;

    if (domain->endpoint_count > FEW_ENDPOINTS && ticks - domain->levels_ticks < MANY_TICKS)
        return;
    domain->levels_ticks = ticks;
    now = ofpi_clock_read();
    for (struct ofp_list *node = domain->endpoints.next; node != &domain->endpoints; node = node->next) {
        struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);

        endpoint->counts->last_progress = now;
        ofpi_levels_write(endpoint);
    }
}
