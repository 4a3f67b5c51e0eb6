/* SPDX-License-Identifier: BSD-3-Clause */
/* From the description of a collective to its plan. */
#ifndef OFPI_COLLECTIVE_CREATE_H
#define OFPI_COLLECTIVE_CREATE_H

#include "collective/collective.h"

/* Check the call and create its collective, without a request. The lock is held. */
int ofpi_collective_create(struct ofp_group *group, const struct ofp_collective *call, struct ofpi_collective **result);
void ofpi_collective_free(struct ofpi_collective *collective);
/* Resolve the call's buffers, since regions may have been closed, and allocate memory. */
int ofpi_collective_resolve(struct ofpi_collective *collective);

#endif
