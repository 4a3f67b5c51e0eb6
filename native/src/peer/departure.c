/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer/departure.h"

#include <stdio.h>

#include "base/reason.h"
#include "object/endpoint.h"

#define NEWS_NS 1000000000ull
#define MATCHING_NS 200000000ull

struct ofpi_end ofpi_departure_end(const struct ofpi_peer *peer)
{
    char text[OFP_TEXT_MAX];

    if (!peer->departed)
        return (struct ofpi_end){.error = OFP_EPEERLOST};
    snprintf(text, sizeof(text),
             peer->departed == OFPI_LEFT ? "rank %u has left the job" : "rank %u of the job has died", peer->rank);
    return (struct ofpi_end){.error = peer->departed == OFPI_LEFT ? OFP_EPEERLEFT : OFP_EPEERDIED,
                             .reason = ofpi_reason_keep(text)};
}

uint64_t ofpi_departure_pause(const struct ofpi_peer *peer)
{
    if (peer->awaits_news && !peer->departed)
        return NEWS_NS;
    return peer->departed && ((struct ofpi_endpoint *)peer->base.endpoint)->info.offloads_matching ? MATCHING_NS : 0;
}

uint64_t ofpi_departure_patience(const struct ofpi_peer *peer)
{
    if (peer->member)
        return NEWS_NS;
    return peer->expected ? ((struct ofpi_endpoint *)peer->base.endpoint)->domain->connect_ns : 0;
}
