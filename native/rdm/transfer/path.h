/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths: their beginning and end, and the packets that leave by them. */
#ifndef OFPI_RDM_PATH_H
#define OFPI_RDM_PATH_H

#include "rdm/transfer/rdm.h"

/* NULL: out of memory, or no buffers for another one. */
struct ofpi_rdm_path *ofpi_rdm_path_create(struct ofpi_rdm_endpoint *endpoint, struct ofp_peer *peer);
/* Give it up. Nothing of it is the caller's any more. */
void ofpi_rdm_path_abandon(struct ofpi_rdm_path *path);
/* One that the channel has never heard of, or has let go of. */
void ofpi_rdm_path_free(struct ofpi_rdm_path *path);
/* It breaks at the next progress: nothing more leaves. `why` is a literal. */
void ofpi_rdm_path_mark_failed(struct ofpi_rdm_path *path, int error, const char *why);
/* Something is left to do: as soon as something arrives or comes back, or without waiting for that. */
void ofpi_rdm_path_schedule(struct ofpi_rdm_path *path);
void ofpi_rdm_path_schedule_now(struct ofpi_rdm_path *path);

/* Whether one packet of a kind can leave now: credit, buffer, window. */
bool ofpi_rdm_can_send(const struct ofpi_rdm_path *path, enum ofpi_rdm_kind kind);
/*
 * A packet with this header, and where its payload goes; ofpi_rdm_packet_send follows. NULL: it cannot leave now, and the
 * path is looked at again.
 */
struct ofpi_packet *ofpi_rdm_packet_build(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header,
                                          uint8_t **payload);
void ofpi_rdm_packet_send(struct ofpi_rdm_path *path, struct ofpi_packet *packet, uint64_t payload_length, bool more);
/* A packet without payload, now or as soon as it can. */
void ofpi_rdm_control_send(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header);
/* Operations that are completed, of which the peer's device may not have all that there is to send. */
uint64_t ofpi_rdm_path_count_unsent(const struct ofpi_rdm_path *path);
/* What waits for credit, and credit that is due. Returns how many packets left. */
int ofpi_rdm_controls_resume(struct ofpi_rdm_path *path);
/* The channel gave a sent one back. */
void ofpi_rdm_sent(struct ofpi_path *path, struct ofpi_packet *packet);

/* Credits that are in every packet. False: the path is doomed. */
bool ofpi_rdm_credits_receive(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header);
/* A received one is done with: its credit is owed, its buffer posted again. */
void ofpi_rdm_packet_return(struct ofpi_rdm_path *path, struct ofpi_packet *packet, enum ofpi_rdm_kind kind);
/* Requests that wait are dealt with no more. */
void ofpi_rdm_requests_discard(struct ofpi_rdm_path *path);
void ofpi_rdm_packet_post(struct ofpi_rdm_endpoint *endpoint, struct ofpi_packet *packet);
/* False: it was not granted. */
bool ofpi_rdm_packet_accept(struct ofpi_rdm_path *path, enum ofpi_rdm_kind kind);
bool ofpi_rdm_is_request(enum ofpi_rdm_kind kind);

#endif
