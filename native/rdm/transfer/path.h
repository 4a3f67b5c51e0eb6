/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths: their beginning and end, and the packets that leave by them. */
#ifndef OFPI_RDM_PATH_H
#define OFPI_RDM_PATH_H

#include "rdm/transfer/rdm.h"

/* NULL: out of memory, or no buffers for another one. */
struct ofpi_rdm_path *ofpi_rdm_path_new(struct ofpi_rdm_endpoint *endpoint, struct ofp_peer *peer);
/* Give it up. Nothing of it is the caller's any more. */
void ofpi_rdm_path_drop(struct ofpi_rdm_path *path);
/* One that the channel has never heard of, or has let go of. */
void ofpi_rdm_path_free(struct ofpi_rdm_path *path);
/* It breaks at the next progress: nothing more leaves. `why` is a literal. */
void ofpi_rdm_path_doom(struct ofpi_rdm_path *path, int error, const char *why);
/* Something is left to do: as soon as something arrives or comes back, or without waiting for that. */
void ofpi_rdm_path_work_later(struct ofpi_rdm_path *path);
void ofpi_rdm_path_work_now(struct ofpi_rdm_path *path);

/* Whether one packet of a kind can leave now: credit, buffer, window. */
bool ofpi_rdm_can_send(const struct ofpi_rdm_path *path, enum ofpi_rdm_kind kind);
/*
 * A packet with this header, and where its payload goes; ofpi_rdm_leave follows. NULL: it cannot leave now, and the
 * path is looked at again.
 */
struct ofpi_packet *ofpi_rdm_begin(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header, uint8_t **payload);
void ofpi_rdm_leave(struct ofpi_rdm_path *path, struct ofpi_packet *packet, uint64_t payload_length, bool more);
/* A packet without payload, now or as soon as it can. */
void ofpi_rdm_tell(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header);
/* Operations that are completed, of which the peer's device may not have all that there is to send. */
uint64_t ofpi_rdm_path_unsent(const struct ofpi_rdm_path *path);
/* What waits for credit, and credit that is due. Returns how many packets left. */
int ofpi_rdm_tell_rest(struct ofpi_rdm_path *path);
/* The channel gave a sent one back. */
void ofpi_rdm_sent(struct ofpi_path *path, struct ofpi_packet *packet);

/* Credits that are in every packet. False: the path is doomed. */
bool ofpi_rdm_take_credits(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *header);
/* A received one is done with: its credit is owed, its buffer posted again. */
void ofpi_rdm_done_with(struct ofpi_rdm_path *path, struct ofpi_packet *packet, enum ofpi_rdm_kind kind);
/* Requests that wait are dealt with no more. */
void ofpi_rdm_forget_waiting(struct ofpi_rdm_path *path);
void ofpi_rdm_post_again(struct ofpi_rdm_endpoint *endpoint, struct ofpi_packet *packet);
/* False: it was not granted. */
bool ofpi_rdm_charge(struct ofpi_rdm_path *path, enum ofpi_rdm_kind kind);
bool ofpi_rdm_is_request(enum ofpi_rdm_kind kind);

#endif
