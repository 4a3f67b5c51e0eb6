/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics of an endpoint, read from the same page as other processes read, and from the objects behind levels. */
#include "base/page.h"
#include "object/endpoint.h"
#include "object/operation.h"
#include "object/peer.h"
#include "ofipy/ofp.h"
#include "progress/levels.h"
#include "progress/progress.h"

static uint64_t count_receives(const struct ofp_list *pendings)
{
    uint64_t count = 0;

    for (const struct ofp_list *node = pendings->next; node != pendings; node = node->next)
        count += ofpi_operation_is_receive(&OFP_CONTAINER_OF(node, const struct ofp_pending, node)->operation);
    return count;
}

/* Count the receives that are posted to the transport. */
static uint64_t count_offloaded_receives(const struct ofpi_endpoint *endpoint)
{
    uint64_t count = count_receives(&endpoint->sourceless);

    for (uint32_t i = 0; i < endpoint->peer_capacity; i++)
        if (endpoint->peers[i])
            count += count_receives(&endpoint->peers[i]->pendings);
    return count;
}

static uint64_t count_row(struct ofpi_counts *counts, uint32_t row)
{
    uint64_t sum = 0;

    for (uint32_t place = 0; place < OFPI_SIZE_CLASSES; place++)
        sum += ofpi_sizes_find(counts, row)->counts[place];
    return sum;
}

static void fill_messages(struct ofp_endpoint_statistics *statistics, struct ofpi_counts *counts)
{
    for (uint32_t row = 0; row < OFPI_ROWS; row++) {
        bool sent = row < OFPI_SENT_PROTOCOLS;

        *(sent ? &statistics->sends : &statistics->receives) += count_row(counts, row);
        *(sent ? &statistics->bytes_sent : &statistics->bytes_received) += counts->bytes[row];
    }
    statistics->messages_mapped = count_row(counts, OFPI_SENT_PROTOCOLS + OFP_PROTOCOL_MAPPED);
    statistics->messages_pipelined = count_row(counts, OFPI_SENT_PROTOCOLS + OFP_PROTOCOL_PIPELINED);
    statistics->messages_attached = count_row(counts, OFPI_SENT_PROTOCOLS + OFP_PROTOCOL_ATTACHED);
}

static void fill_levels(struct ofp_endpoint_statistics *statistics, const struct ofpi_levels *levels)
{
    statistics->posted_receives = levels->posted_receives;
    statistics->unexpected_messages = levels->unexpected_messages;
    statistics->unexpected_bytes = levels->unexpected_bytes;
    statistics->announced_messages = levels->announced_messages;
    statistics->linear_searches = levels->linear_searches;
    statistics->backlog = levels->backlog;
    statistics->pending = levels->pending;
}

/* In the page the endpoints of a domain divide these. Here each has all. */
static void fill_domain(struct ofp_endpoint_statistics *statistics, const struct ofpi_domain *domain)
{
    statistics->sleeps = domain->sleeps;
    statistics->wakeups = domain->wakeups;
    statistics->progress_calls = ofp_load_relaxed(&domain->progress_count);
    statistics->registrations = domain->base.registrations;
    statistics->registrations_reused = domain->base.registrations_reused;
    statistics->registrations_dropped = domain->base.registrations_dropped;
    statistics->packet_buffers = domain->base.packet_buffers;
    statistics->packet_buffers_reclaimed = domain->base.packet_buffers_reclaimed;
}

int ofp_endpoint_statistics(struct ofp_endpoint *handle, struct ofp_endpoint_statistics *statistics)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    const struct ofpi_counts *counts;
    int result = ofpi_endpoint_enter(endpoint);

    if (result)
        return result;
    endpoint = endpoint->behind;
    counts = endpoint->counts;
    ofpi_levels_write(endpoint);
    *statistics = (struct ofp_endpoint_statistics){
        .reads = counts->reads,
        .writes = counts->writes,
        .atomics = counts->atomics,
        .flushes = counts->flushes,
        .errors = counts->errors,
        .peers_up = counts->peers_up,
        .peers_lost = counts->peers_lost,
        .messages_dropped = counts->messages_dropped,
        .packed = counts->packed,
    };
    fill_messages(statistics, endpoint->counts);
    fill_levels(statistics, &ofpi_page_entry_find(endpoint->counts)->levels);
    if (endpoint->info.offloads_matching)
        statistics->posted_receives += count_offloaded_receives(endpoint);
    fill_domain(statistics, endpoint->domain);
    ofpi_domain_leave(endpoint->domain);
    return 0;
}
