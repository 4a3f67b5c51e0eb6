/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes whether the peer of an ended path still exists. A listener rejects a connection request without private data.
 */
#ifndef VERBS_PROBE_H
#define VERBS_PROBE_H

#include "packet/packet.h"

/* The channel's entry. */
void verbs_probe_start(struct ofpi_path *path);
void verbs_probe_stop(struct verbs_path *path);

#endif
