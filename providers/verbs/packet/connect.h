/* SPDX-License-Identifier: BSD-3-Clause */
/* Requesting, accepting and rejecting paths, and the events of their ids. */
#ifndef VERBS_PACKET_CONNECT_H
#define VERBS_PACKET_CONNECT_H

#include "packet/packet.h"

/* Entries of the channel's table. */
int verbs_path_connect(struct ofpi_path *path, const uint8_t *hello, size_t length, char *text, size_t text_size);
int verbs_path_accept(struct ofpi_path *path, uint64_t request, const uint8_t *hello, size_t length);
void verbs_path_reject(struct ofpi_channel *channel, uint64_t request, bool later);

/* Handles a connection request at the endpoint's own id. */
void verbs_path_requested(struct verbs_listener *listener, const struct verbs_event *event);

#endif
