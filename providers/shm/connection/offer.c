/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection/offer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "link/link.h"
#include "link/process.h"
#include "memory/segment.h"

int shm_segment_offer_open(struct shm_segment_offer *offer, struct shm_meeting *meeting, struct shm_received *received,
                           bool keep, char *text, size_t text_size)
{
    const struct shm_packet *packet = &received->packet;
    int error;

    if (received->fd_count != 2 || packet->number == 0 || packet->number > SHM_OWNER_MAX) {
        snprintf(text, text_size, "its greeting is incomplete");
        return -EPROTO;
    }
    error = shm_segment_map(&offer->segment, received->fds[0], text, text_size);
    if (error)
        return error;
    if (offer->segment.incarnation != packet->incarnation) {
        snprintf(text, text_size, "its segment is not its own");
        shm_segment_unmap(&offer->segment);
        return -EPROTO;
    }
    offer->process = shm_process_acquire(meeting->endpoint->domain, packet->token, meeting->watch.fd,
                                         packet->start_time, received->fds[1], keep, &error);
    received->fds[1] = -1;
    if (!offer->process)
        shm_segment_unmap(&offer->segment);
    return offer->process ? 0 : error;
}

void shm_segment_offer_accept(struct shm_link *link, const struct shm_segment_offer *offer,
                              const struct shm_packet *packet)
{
    link->segment = offer->segment;
    link->process = offer->process;
    link->ring = (struct shm_ring){offer->segment.header, offer->segment.slots, offer->segment.slot_shift};
    link->number_there = packet->number;
    link->stamp_out = packet->stamp;
    link->probe_address = packet->probe_address;
    /* Reading the peer's incarnation shows whether attach is allowed. */
    link->attach = link->endpoint->domain->attach && shm_process_is_same(link);
}

void shm_segment_offer_release(struct shm_segment_offer *offer)
{
    shm_segment_unmap(&offer->segment);
    shm_process_release(offer->process);
}

bool shm_identity_is_own(const struct shm_endpoint *endpoint, uint64_t incarnation, const uint8_t *identity)
{
    return incarnation == endpoint->incarnation || memcmp(identity, endpoint->base->identity, SHM_IDENTITY_SIZE) == 0;
}

static int identify_peer(const struct shm_segment *segment, struct ofp_peer *peer, char *text, size_t text_size)
{
    if (shm_identity_is_own(shm_endpoint_of(peer->endpoint), segment->incarnation, segment->identity)) {
        snprintf(text, text_size, "who answered says that it is this endpoint itself");
        return -ECONNREFUSED;
    }
    return shm_identity_is_stated(segment->identity) ? ofp_peer_identified(peer, segment->identity, text, text_size)
                                                     : 0;
}

int shm_segment_offer_identify(struct shm_segment_offer *offer, struct ofp_peer *peer, char *text, size_t text_size)
{
    int error = identify_peer(&offer->segment, peer, text, text_size);

    if (error)
        shm_segment_offer_release(offer);
    return error;
}
