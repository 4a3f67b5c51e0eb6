/* SPDX-License-Identifier: BSD-3-Clause */
/* How a peer gets its path and loses it: the acts that native/meet decides on. */
#ifndef OFPI_RDM_MEETING_H
#define OFPI_RDM_MEETING_H

#include "rdm/transfer/rdm.h"

/* As the entry of an endpoint. */
int ofpi_rdm_peer_connect(struct ofp_peer *peer, char *text, size_t text_size);
/* Give up whatever there is of a peer: `peer_down`. */
void ofpi_rdm_peer_disconnect(struct ofp_peer *peer);

/* What the channel tells; channel.h. */
void ofpi_rdm_requested(struct ofpi_channel *channel, const struct ofpi_path_request *request);
void ofpi_rdm_accepted(struct ofpi_path *path, const uint8_t *hello, size_t length);
void ofpi_rdm_refused(struct ofpi_path *path, bool later, const struct ofpi_path_end *end);
void ofpi_rdm_confirmed(struct ofpi_path *path);
void ofpi_rdm_broken(struct ofpi_path *path, const struct ofpi_path_end *end);

/* A path is over, and its last packet is read or can not be. */
void ofpi_rdm_path_drained(struct ofpi_rdm_path *path);
/* The one that the peer is met by breaks because of what came, or did not leave. */
void ofpi_rdm_path_failed(struct ofpi_rdm_path *path);

#endif
