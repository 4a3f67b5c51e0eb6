/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a peer whose path has ended is there: somebody who listens answers a request that says nothing with no. */
#ifndef VERBS_PROBE_H
#define VERBS_PROBE_H

#include "packet/packet.h"

/* The channel's entry. */
void verbs_probe_start(struct ofpi_path *path);
void verbs_probe_stop(struct verbs_path *path);

#endif
