/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests of a path, and what the device tells of them. */
#ifndef VERBS_WORK_H
#define VERBS_WORK_H

#include "packet/packet.h"

/* What a path's send queue has room for without asking: struct ofpi_channel_limits.path_window. */
uint32_t verbs_path_compute_window(uint32_t depth);

/* Entries of the channel's table. */
int verbs_packet_post_receive(struct ofpi_channel *channel, struct ofpi_packet *packet);
int verbs_packet_send(struct ofpi_path *path, struct ofpi_packet *packet, bool more);
int verbs_path_post_read(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address,
                         uint64_t key, uint64_t length, void *cookie);
int verbs_path_post_write(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address,
                          uint64_t key, uint64_t length, void *cookie);
uint64_t verbs_path_count_unsent(const struct ofpi_path *path);
int verbs_path_post_atomic(struct ofpi_path *path, struct ofpi_packet *packet, const struct ofpi_word *word,
                           void *cookie);

/* Hand the chain to the device. */
void verbs_packets_flush(struct verbs_rdm *rdm);
/* A write of nothing, which no key is needed for: when it has ended, so has all before it, and somebody is there. */
void verbs_path_post_empty_write(struct verbs_path *path);
/* Whether all that was sent has arrived; if not, the end of it will be told. */
bool verbs_path_sends_drain(struct verbs_path *path);
/* The device has let go of the queue: what was in it goes back. */
void verbs_path_sends_cancel(struct verbs_path *path);

/* Take what is there, at most a few batches; `*empty`: that was all. Returns how many. */
int verbs_rdm_poll(struct verbs_rdm *rdm, bool *empty);

#endif
