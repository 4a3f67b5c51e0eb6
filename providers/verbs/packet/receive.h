/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet buffers at the shared receive queue. */
#ifndef VERBS_PACKET_RECEIVE_H
#define VERBS_PACKET_RECEIVE_H

#include "packet/packet.h"

/* Whether the device loses buffers, and takes them in the order of posting: Soft-RoCE. */
bool verbs_port_is_soft_roce(const struct verbs_port *port);
/* Prepare to find lost buffers, if the device loses any. Returns a negative errno on failure. */
int verbs_packet_buffers_open(struct verbs_rdm *rdm, const struct ofpi_channel_limits *limits);
/* Every queue pair is destroyed. */
void verbs_packet_buffers_close(struct verbs_rdm *rdm);

/* Entry of the channel's table. */
int verbs_packet_post_receive(struct ofpi_channel *channel, struct ofpi_packet *packet);
/* The device returns a buffer. `path` is NULL if its queue pair is not known any more. */
void verbs_packet_receive_complete(struct verbs_rdm *rdm, const struct verbs_path *path, struct ofpi_packet *packet);

/* The queue pair can have a buffer from now on. Returns false if there is no memory. */
bool verbs_path_holder_open(struct verbs_path *path);
/* Mark the holders whose queue pairs are destroyed. Completions of them may still have to be read. */
void verbs_packet_holders_check(struct verbs_rdm *rdm);
/* Reclaim lost buffers, and post others. `empty`: completions were read until there were none. */
void verbs_packet_buffers_reclaim(struct verbs_rdm *rdm, bool empty);

#endif
