/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths: asked for, accepted, and their end. */
#ifndef VERBS_PATH_H
#define VERBS_PATH_H

#include "packet/packet.h"

/* Entries of the channel's table. */
int verbs_path_connect(struct ofpi_path *path, const uint8_t *hello, size_t length, char *text, size_t text_size);
int verbs_path_accept(struct ofpi_path *path, uint64_t request, const uint8_t *hello, size_t length);
void verbs_path_reject(struct ofpi_channel *channel, uint64_t request, bool later);
void verbs_path_close(struct ofpi_path *path);

/* The connection manager's events of the endpoint's own id: requests. */
void verbs_path_requested(struct verbs_listener *listener, const struct verbs_event *event);

/* It carries nothing any more. Its user hears when everything that came before has been told. */
void verbs_path_mark_failed(struct verbs_path *path, const struct ofpi_path_end *end);
/* Nothing that was sent is under way; the device is asked to tell of the end of what is. */
bool verbs_path_drain(struct verbs_path *path);
/* A closed one may have let go of more. */
void verbs_path_schedule(struct verbs_path *path);
/* Tell of what has failed, and of what is closed and has nothing under way. Returns of how many. */
int verbs_paths_report_ends(struct verbs_rdm *rdm);
/* Closed ones wait no longer for what was sent by them. */
void verbs_paths_remove(struct verbs_rdm *rdm);

#endif
