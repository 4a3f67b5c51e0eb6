/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices are polled in a round of progress. The functions are those of ofp_endpoint_ops. */
#ifndef LINK_PROGRESS_H
#define LINK_PROGRESS_H

#include "link/link_objects.h"

/* An operation was posted to a network, or one has brought something: poll the networks in every round for a while. */
void link_endpoint_mark_busy(struct link_endpoint *endpoint);
int link_endpoint_progress(struct ofp_endpoint *outer);
bool link_endpoint_arm(struct ofp_endpoint *outer);
void link_endpoint_disarm(struct ofp_endpoint *outer);

#endif
