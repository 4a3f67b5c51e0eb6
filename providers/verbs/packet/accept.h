/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of peers. An endpoint with a key answers a first request by a challenge, and reports a second one to its user
 * only if the proof in it is valid: until then no peer changes and no queue pair exists.
 */
#ifndef VERBS_PACKET_ACCEPT_H
#define VERBS_PACKET_ACCEPT_H

#include "packet/packet.h"

/* Entries of the channel's table. */
int verbs_path_accept(struct ofpi_path *path, uint64_t request, const uint8_t *hello, size_t length);
void verbs_path_reject(struct ofpi_channel *channel, uint64_t request, enum ofpi_refusal why);

/* Handles a connection request at the endpoint's own id. */
void verbs_path_requested(struct verbs_listener *listener, const struct verbs_event *event);

#endif
