/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions whose results every member gets. Each function adds the steps of a round; false: there is no such round. */
#ifndef OFPI_SCHEDULE_VECTOR_H
#define OFPI_SCHEDULE_VECTOR_H

#include "schedule/steps.h"

bool ofpi_allreduce_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);
bool ofpi_reduce_scatter_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);
bool ofpi_scan_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);
bool ofpi_exscan_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);

#endif
