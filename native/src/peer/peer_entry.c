/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer/peer_entry.h"

#include "base/page.h"
#include "ofipy/ofp.h"
#include "ofipy/provider.h"

/* Name of the provider whose transport carries the peer's messages. */
static const char *find_way(const struct ofp_peer *peer)
{
    const struct ofp_peer *lane = peer->endpoint->ops->peer_lane ? peer->endpoint->ops->peer_lane(peer) : peer;

    return lane ? lane->endpoint->info->provider : "";
}

void ofpi_peer_entry_open(struct ofpi_peer *peer)
{
    const struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);
    const struct ofp_provider *provider = endpoint->domain->base.provider;
    char address[OFP_TEXT_MAX] = "";

    if (peer->counts != &endpoint->counts->others) {
        ofpi_peer_counts_set_way(endpoint->counts, peer->counts, find_way(&peer->base));
        return;
    }
    provider->address_format(peer->base.endpoint->info, peer->base.address, peer->base.address_length, address,
                             sizeof(address));
    peer->counts = ofpi_peer_counts_open(endpoint->counts, find_way(&peer->base), address);
}

void ofpi_peer_entry_close(struct ofpi_peer *peer)
{
    struct ofpi_counts *counts = ofpi_endpoint_of_peer(&peer->base)->counts;

    ofpi_peer_counts_close(counts, peer->counts);
    peer->counts = &counts->others;
}
