/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection setup: how a peer gets its path and loses it. native/meet decides which acts follow an event; this
 * executes them.
 */
#ifndef OFPI_RDM_MEETING_H
#define OFPI_RDM_MEETING_H

#include "rdm/transfer/rdm.h"

/* As ofp_endpoint_ops.connect. */
int ofpi_rdm_peer_connect(struct ofp_peer *peer, char *text, size_t text_size);
/* As ofp_endpoint_ops.peer_down: abandon the paths of a peer and stop its timer. */
void ofpi_rdm_peer_disconnect(struct ofp_peer *peer);

/* Events of the channel; channel.h. */
void ofpi_rdm_requested(struct ofpi_channel *channel, const struct ofpi_path_request *request);
void ofpi_rdm_accepted(struct ofpi_path *path, const uint8_t *hello, size_t length);
void ofpi_rdm_refused(struct ofpi_path *path, const struct ofpi_meeting_end *end);
void ofpi_rdm_confirmed(struct ofpi_path *path);
void ofpi_rdm_broken(struct ofpi_path *path, const struct ofpi_meeting_end *end);

/* The path is OVER, and its last packet was handled or cannot be. */
void ofpi_rdm_path_drained(struct ofpi_rdm_path *path);
/* A path was marked failed: end it. */
void ofpi_rdm_path_failed(struct ofpi_rdm_path *path);

#endif
