/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers in a binary heap. A timer always starts: those for which the heap has no memory are kept in a list. The current
 * time is an argument, so that tests can choose it. The caller holds the domain's lock.
 */
#ifndef OFPI_TIMER_H
#define OFPI_TIMER_H

#include "ofipy/provider.h"

struct ofpi_timers {
    struct ofp_timer **heap; /* heap[0] unused: position 0 means not running */
    uint64_t count, capacity;
    struct ofp_timer *unsorted; /* timers outside the heap, linked by `position`; there are few, and rarely any */
};
void ofpi_timers_init(struct ofpi_timers *timers);
void ofpi_timers_close(struct ofpi_timers *timers);
void ofpi_timers_start(struct ofpi_timers *timers, struct ofp_timer *timer); /* restarts a running one */
void ofpi_timers_stop(struct ofpi_timers *timers, struct ofp_timer *timer);  /* harmless when not running */
static inline bool ofpi_timers_are_running(const struct ofpi_timers *timers)
{
    return timers->count || timers->unsorted;
}
/*
 * Call `expired` of each timer that is due at `now`, earliest first; returns how many. A callback may start and stop
 * timers.
 */
int ofpi_timers_run(struct ofpi_timers *timers, uint64_t now);
uint64_t ofpi_timers_find_deadline(const struct ofpi_timers *timers); /* deadline of the earliest, UINT64_MAX: none */

#endif
