/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives without a root and without a reduction. Each function adds the steps of a round; false: there is no such round. */
#ifndef OFPI_SCHEDULE_EXCHANGE_H
#define OFPI_SCHEDULE_EXCHANGE_H

#include "schedule/steps.h"

bool ofpi_barrier_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);
bool ofpi_allgather_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);
bool ofpi_alltoall_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result);

#endif
