/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_GROUP_CLOSE_H
#define OFPI_GROUP_CLOSE_H

#include "object/endpoint.h"

/* Whether other members may still need a decision of a group of this endpoint. */
bool ofpi_groups_are_needed(const struct ofpi_endpoint *endpoint);
/* The endpoint has closed, so that no transfer is in flight: end what runs, and close its groups. */
void ofpi_groups_leave_endpoint(struct ofpi_endpoint *endpoint);

#endif
