/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules of collectives: which messages a member of a group sends and receives in each round, and what it computes
 * in between. Pure: a schedule knows ranks, places and lengths; it has no state and uses no memory but its arguments.
 *
 * All members compute their own rounds from the same description, so a schedule is right if the sends of one member are
 * the receives of the other, in the same order for each pair of members. tests/native/test_schedule.c plays all members
 * against each other.
 */
#ifndef OFPI_SCHEDULE_H
#define OFPI_SCHEDULE_H

#include "schedule/plan.h"

/* Set `algorithm` by what all members know alike: kind, size, lengths, and whether blocks differ. */
void ofpi_plan_choose(struct ofpi_plan *plan);
/* Bytes of TEMP. */
uint64_t ofpi_plan_compute_temporary(const struct ofpi_plan *plan);
/* The steps of a round, from 0; 0 for a round in which this member has none; -1 behind its last round. */
int ofpi_plan_build_round(const struct ofpi_plan *plan, uint64_t round, struct ofpi_step steps[OFPI_STEPS_MAX]);

#endif
