/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment offer: the segment and process identity that the peer of a meeting sends, until a link owns them. */
#ifndef SHM_OFFER_H
#define SHM_OFFER_H

#include "connection/meet.h"

struct shm_segment_offer {
    struct shm_segment segment;
    struct shm_process *process;
};

/* Map and check the offered segment. On a negative errno, with or without a text, the offer is empty. */
int shm_segment_offer_open(struct shm_segment_offer *offer, struct shm_meeting *meeting, struct shm_received *received,
                           bool keep, char *text, size_t text_size);
/* Check that the offer comes from the intended peer. 0, or -ECONNREFUSED with a text; then the offer is empty. */
int shm_segment_offer_identify(struct shm_segment_offer *offer, struct ofp_peer *peer, char *text, size_t text_size);
/* Move the offer to the link; release it from there. */
void shm_segment_offer_accept(struct shm_link *link, const struct shm_segment_offer *offer,
                              const struct shm_packet *packet);
/* Release an offer that no link takes. */
void shm_segment_offer_release(struct shm_segment_offer *offer);
/*
 * Whether an incarnation or identity is this endpoint's own. An endpoint calls no peer to connect to itself, so another
 * process states it wrongly.
 */
bool shm_identity_is_own(const struct shm_endpoint *endpoint, uint64_t incarnation, const uint8_t *identity);

#endif
