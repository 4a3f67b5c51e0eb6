/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests of paths, and their completions. */
#ifndef VERBS_WORK_H
#define VERBS_WORK_H

#include "packet/packet.h"

/* The number of packets and moves that a path's user may have in flight: struct ofpi_channel_limits.path_window. */
uint32_t verbs_path_compute_window(uint32_t depth);

/* Entries of the channel's table. */
int verbs_packet_send(struct ofpi_path *path, struct ofpi_packet *packet, bool more);
int verbs_path_post_read(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address,
                         uint64_t key, uint64_t length, void *cookie);
int verbs_path_post_write(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address,
                          uint64_t key, uint64_t length, void *cookie);
uint64_t verbs_path_count_unsent(const struct ofpi_path *path);
int verbs_path_post_atomic(struct ofpi_path *path, struct ofpi_packet *packet, const struct ofpi_word *word,
                           void *cookie);

/* Post the chain. */
void verbs_packets_flush(struct verbs_rdm *rdm);
/* An empty write needs no key. When it ends, all work requests before it have ended, and the peer is alive. */
void verbs_path_post_empty_write(struct verbs_path *path);
/* Whether all sends have arrived; otherwise a completion is requested. */
bool verbs_path_sends_drain(struct verbs_path *path);
/* The queue pair is stopped: return everything in its send queue. */
void verbs_path_sends_cancel(struct verbs_path *path);

/* Read completions, at most a few batches. `*empty`: none are left. Returns their number. */
int verbs_rdm_poll(struct verbs_rdm *rdm, bool *empty);

#endif
