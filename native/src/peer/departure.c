/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer/departure.h"

#include <errno.h>
#include <stdio.h>

#include "base/reason.h"
#include "object/endpoint.h"

#define NEWS_NS 1000000000ull
#define MATCHING_NS 200000000ull

struct ofpi_end ofpi_departure_end_build(const struct ofpi_peer *peer)
{
    bool left = ofpi_departure_of_peer(peer) == OFPI_LEFT;
    char text[OFP_TEXT_MAX];

    if (!ofpi_departure_of_peer(peer) && peer->incompatible)
        return (struct ofpi_end){.error = EPROTONOSUPPORT, .reason = peer->incompatible};
    if (!ofpi_departure_of_peer(peer))
        return (struct ofpi_end){.error = OFP_EPEERLOST};
    snprintf(text, sizeof(text), left ? "rank %u has left the job" : "rank %u of the job has died", peer->member->rank);
    return (struct ofpi_end){.error = left ? OFP_EPEERLEFT : OFP_EPEERDIED, .reason = ofpi_reason_store(text)};
}

uint64_t ofpi_departure_pause_compute(const struct ofpi_peer *peer)
{
    const struct ofpi_endpoint *endpoint = (const struct ofpi_endpoint *)peer->base.endpoint;

    if (peer->member && peer->member->awaits_departure && !peer->member->departed)
        return NEWS_NS;
    return ofpi_departure_of_peer(peer) && endpoint->info.offloads_matching ? MATCHING_NS : 0;
}

uint64_t ofpi_departure_patience_compute(const struct ofpi_peer *peer)
{
    if (peer->member)
        return NEWS_NS;
    return peer->expected ? ((struct ofpi_endpoint *)peer->base.endpoint)->domain->connect_ns : 0;
}
