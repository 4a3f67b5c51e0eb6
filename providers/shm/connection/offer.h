/* SPDX-License-Identifier: BSD-3-Clause */
/* An offer: the segment and domain that the other side of a meeting sends, until a link takes them. */
#ifndef SHM_OFFER_H
#define SHM_OFFER_H

#include "connection/meet.h"

struct shm_segment_offer {
    struct shm_segment segment;
    struct shm_process *process;
};

/* Map and check it. A negative errno, with a text or without: it holds nothing. */
int shm_segment_offer_open(struct shm_segment_offer *offer, struct shm_meeting *meeting, struct shm_received *received,
                           bool keep, char *text, size_t text_size);
/* 0, or -ECONNREFUSED with a text: it is not the peer that is meant, and holds nothing any more. */
int shm_segment_offer_identify(struct shm_segment_offer *offer, struct ofp_peer *peer, char *text, size_t text_size);
/* Give the segment to the link; take it back. */
void shm_segment_offer_accept(struct shm_link *link, const struct shm_segment_offer *offer,
                              const struct shm_packet *packet);
void shm_segment_offer_return(struct shm_link *link);
/* An endpoint that is its own peer calls nobody, so whoever shows what is ours is somebody else. */
bool shm_identity_is_own(const struct shm_endpoint *endpoint, uint64_t incarnation, const uint8_t *identity);

#endif
