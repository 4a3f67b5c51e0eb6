/* SPDX-License-Identifier: BSD-3-Clause */
/* Requesting paths, and the events of the ids of all paths. */
#ifndef VERBS_PACKET_CONNECT_H
#define VERBS_PACKET_CONNECT_H

#include "packet/packet.h"

/* Entry of the channel's table. */
int verbs_path_connect(struct ofpi_path *path, const uint8_t *hello, size_t length, char *text, size_t text_size);

/* Handles the events of a path's id: its listener. */
void verbs_path_event_handle(struct verbs_listener *listener, const struct verbs_event *event);
/* The parameters of a request or of its answer. `bytes`: encoded private data. */
struct rdma_conn_param verbs_path_parameters_build(const struct verbs_path *path, const uint8_t *bytes, uint8_t length);
/* Move the queue pair from RESET to RTS. The connection manager knows the peer's side. */
int verbs_path_pair_connect(struct verbs_path *path);

#endif
