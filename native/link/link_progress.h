/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices are asked for work, and how often. As of ofp_endpoint_ops. */
#ifndef LINK_PROGRESS_H
#define LINK_PROGRESS_H

#include "link/link_objects.h"

/* A network was given something to do, or has brought something. */
void link_endpoint_mark_busy(struct link_endpoint *endpoint);
int link_endpoint_progress(struct ofp_endpoint *outer);
bool link_endpoint_arm(struct ofp_endpoint *outer);
void link_endpoint_disarm(struct ofp_endpoint *outer);

#endif
