/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths: their creation and end, and the packets that leave by them. */
#ifndef OFPI_RDM_PATH_H
#define OFPI_RDM_PATH_H

#include "rdm/transfer/rdm.h"

/* NULL: out of memory, or no receive buffers for another path. */
struct ofpi_rdm_path *ofpi_rdm_path_create(struct ofpi_rdm_endpoint *endpoint, struct ofp_peer *peer);
/* Close a path of which the caller needs nothing any more. The channel reports `closed` later. */
void ofpi_rdm_path_abandon(struct ofpi_rdm_path *path);
/* Free a path that the channel does not know, or has closed. */
void ofpi_rdm_path_free(struct ofpi_rdm_path *path);
/*
 * Mark a path failed: nothing more leaves, and the next round of progress ends it. `why` is a string literal or NULL.
 */
void ofpi_rdm_path_mark_failed(struct ofpi_rdm_path *path, int error, const char *why);
/* Schedule a path for the next round of progress: at the next event, or without waiting for one. */
void ofpi_rdm_path_schedule(struct ofpi_rdm_path *path);
void ofpi_rdm_path_schedule_now(struct ofpi_rdm_path *path);

/* Whether a packet of a kind can leave now: it needs a credit, a send buffer, and space in the window. */
bool ofpi_rdm_can_send(const struct ofpi_rdm_path *path, enum ofpi_rdm_kind kind);
/*
 * Build a packet with this header and return the place of its payload; ofpi_rdm_packet_send follows. NULL: it cannot
 * leave now, and the path is scheduled.
 */
struct ofpi_packet *ofpi_rdm_packet_build(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header,
                                          uint8_t **payload);
void ofpi_rdm_packet_send(struct ofpi_rdm_path *path, struct ofpi_packet *packet, uint64_t payload_length, bool more);
/* Send a packet without payload, now or as soon as possible. */
void ofpi_rdm_control_send(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header);
/* Upper bound for completed operations that have not reached the peer's device. */
uint64_t ofpi_rdm_path_count_unsent(const struct ofpi_rdm_path *path);
/* Send controls that wait, and owed credits. Returns how many packets left. */
int ofpi_rdm_controls_resume(struct ofpi_rdm_path *path);
/* Event of the channel: it returns a sent packet. */
void ofpi_rdm_sent(struct ofpi_path *path, struct ofpi_packet *packet);

/* Add the credits that every packet has. False: the path is marked failed. */
bool ofpi_rdm_credits_receive(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header);
/* A received packet was handled: mark its credit owed, and post its buffer again. */
void ofpi_rdm_packet_return(struct ofpi_rdm_path *path, struct ofpi_packet *packet, enum ofpi_rdm_kind kind);
/* Discard requests that wait. */
void ofpi_rdm_requests_discard(struct ofpi_rdm_path *path);
void ofpi_rdm_packet_post(struct ofpi_rdm_endpoint *endpoint, struct ofpi_packet *packet);
/* Account for the credit of an arrived packet. False: it had none, and the path is marked failed. */
bool ofpi_rdm_packet_accept(struct ofpi_rdm_path *path, enum ofpi_rdm_kind kind);
bool ofpi_rdm_is_request(enum ofpi_rdm_kind kind);

#endif
