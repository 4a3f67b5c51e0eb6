/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths. States: requested or accepted, up, failed or closed. Events of the connection manager and calls of the
 * channel's user change them, with the domain's lock held.
 */
#ifndef VERBS_PATH_H
#define VERBS_PATH_H

#include "packet/packet.h"

/* Initialize a path without id and queue pair. `event` handles the events of its id. */
void verbs_path_init(struct verbs_path *path, struct ofpi_path *base, enum verbs_path_state state,
                     void (*event)(struct verbs_listener *listener, const struct verbs_event *event));
/* Create the queue pair. A negative errno: there is none. */
int verbs_path_pair_open(struct verbs_path *path);
/* Release the id and the queue pair of a path, which has no work in flight. Another id may take their place. */
void verbs_path_id_close(struct verbs_path *path);
/* End a path, and release its id and its queue pair. */
void verbs_path_remove(struct verbs_path *path);
/* Entry of the channel's table. */
void verbs_path_close(struct ofpi_path *path);

/* Mark the path failed. The end is reported to its user after all completions before it were delivered. */
void verbs_path_mark_failed(struct verbs_path *path, const struct ofpi_meeting_end *end);
/* Whether nothing that was sent is in flight; if something is, a completion is requested. */
bool verbs_path_drain(struct verbs_path *path);
/* Check again whether a closed path is drained. */
void verbs_path_schedule(struct verbs_path *path);
/* Report failed paths, and closed ones with nothing in flight. Returns their number. */
int verbs_paths_report_ends(struct verbs_rdm *rdm);
/* Remove all paths, also closed ones with sends in flight. */
void verbs_paths_remove(struct verbs_rdm *rdm);

#endif
