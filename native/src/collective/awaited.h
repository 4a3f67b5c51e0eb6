/* SPDX-License-Identifier: BSD-3-Clause */
/* Which members a collective waits for. The lock is held. */
#ifndef OFPI_COLLECTIVE_AWAITED_H
#define OFPI_COLLECTIVE_AWAITED_H

#include "collective/collective.h"

/* Fill the state of a collective that runs. */
void ofpi_collective_describe(const struct ofpi_collective *collective, struct ofp_collective_state *state);
/* Add a rank once. */
void ofpi_awaited_add(struct ofp_collective_state *state, uint32_t rank);
/* Log a warning that names the group, the call, and the members that it waits for. */
void ofpi_awaited_warn(const struct ofp_group *group, const struct ofp_collective_state *state);

#endif
