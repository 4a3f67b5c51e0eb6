/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofp_peer_protocols: rows of lengths, found by querying the provider's choice for one length after another. So they say
 * what the code that posts decides, whatever its rules are.
 */
#include <errno.h>

#include "object/endpoint.h"
#include "object/peer.h"
#include "ofipy/protocols.h"
#include "ofipy/provider.h"
#include "peer/peer_find.h"
#include "progress/progress.h"

static bool choose_protocol(const struct ofp_peer *lane, const struct ofp_protocol_query *query,
                            struct ofp_protocol_choice *choice)
{
    const struct ofp_endpoint_ops *ops = lane->endpoint->ops;

    *choice = (struct ofp_protocol_choice){.protocol = OFP_PROTOCOL_EAGER, .reason = OFP_PROTOCOL_FORCED};
    if (lane->endpoint->info->offloads_matching)
        choice->protocol = (enum ofp_protocol)OFP_PROTOCOL_OFFLOADED;
    else if (ops->protocol_choose)
        return ops->protocol_choose(lane, query, choice);
    return !query->received;
}

/* Whether messages of this length belong to the row of `first`. */
static bool is_choice_equal(const struct ofp_peer *lane, struct ofp_protocol_query query, uint64_t length,
                            const struct ofp_protocol_choice *first)
{
    struct ofp_protocol_choice choice;

    query.length = length;
    return choose_protocol(lane, &query, &choice) && choice.protocol == first->protocol &&
           choice.reason == first->reason && !choice.cost == !first->cost;
}

/* The longest message of the row that begins with the query's length. Between two powers of two a row is one range. */
static uint64_t find_row_end(const struct ofp_peer *lane, const struct ofp_protocol_query *query, uint64_t limit,
                             const struct ofp_protocol_choice *first)
{
    uint64_t inside = query->length, beyond = 1;

    while (beyond <= inside)
        beyond *= 2;
    for (; beyond < limit && is_choice_equal(lane, *query, beyond, first); beyond *= 2)
        inside = beyond;
    if (beyond >= limit && is_choice_equal(lane, *query, limit, first))
        return limit;
    if (beyond > limit)
        beyond = limit;
    while (beyond - inside > 1) {
        uint64_t middle = inside + (beyond - inside) / 2;

        if (is_choice_equal(lane, *query, middle, first))
            inside = middle;
        else
            beyond = middle;
    }
    return inside;
}

/* Rows of one kind. Returns how many. */
static uint32_t fill_rows(const struct ofp_peer *lane, struct ofp_protocol_query query, uint64_t limit,
                          struct ofp_protocol_row *rows, uint32_t max)
{
    struct ofp_protocol_choice choice;
    uint32_t count = 0;

    for (uint64_t to; count < max && query.length <= limit && choose_protocol(lane, &query, &choice);
         query.length = to + 1) {
        to = find_row_end(lane, &query, limit, &choice);
        rows[count++] = (struct ofp_protocol_row){.from = query.length,
                                                  .to = to,
                                                  .cost = choice.cost,
                                                  .protocol = choice.protocol,
                                                  .reason = choice.reason,
                                                  .received = query.received,
                                                  .shared = query.shared};
    }
    return count;
}

/* The rows of a peer that is UP. A transport moves no payload for a message without any, so received rows begin at 1. */
static uint32_t fill_all_rows(const struct ofp_peer *peer, uint64_t limit, struct ofp_protocol_row *rows, uint32_t max)
{
    const struct ofp_peer *lane = peer->endpoint->ops->peer_lane ? peer->endpoint->ops->peer_lane(peer) : peer;
    uint32_t count;

    if (!lane || lane->state != OFP_PEER_UP)
        return 0;
    count = fill_rows(lane, (struct ofp_protocol_query){.length = 0}, limit, rows, max);
    for (unsigned shared = 0; shared <= 1; shared++)
        count += fill_rows(lane, (struct ofp_protocol_query){.length = 1, .received = true, .shared = shared}, limit,
                           rows + count, max - count);
    return count;
}

int ofp_peer_protocols(struct ofp_endpoint *handle, uint32_t index, struct ofp_protocol_row *rows, uint32_t max)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int result = ofpi_endpoint_enter(endpoint);
    const struct ofpi_peer *peer;

    if (result)
        return result;
    endpoint = endpoint->behind;
    if (endpoint->connection)
        peer = endpoint->peer_capacity ? endpoint->peers[0] : NULL;
    else
        peer = ofpi_peer_get(endpoint, index, &result);
    if (peer && peer->base.state == OFP_PEER_UP)
        result = (int)fill_all_rows(
            &peer->base, endpoint->info.max_msg_size < INT64_MAX ? endpoint->info.max_msg_size : INT64_MAX, rows, max);
    ofpi_domain_leave(endpoint->domain);
    return result;
}
