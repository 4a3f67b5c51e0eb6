/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives with a root. Each function adds the steps of a round; false: there is no such round. */
#ifndef OFPI_SCHEDULE_TREE_H
#define OFPI_SCHEDULE_TREE_H

#include "schedule/steps.h"

bool ofpi_broadcast_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);
bool ofpi_reduce_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);
bool ofpi_gather_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);
bool ofpi_scatter_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);

#endif
