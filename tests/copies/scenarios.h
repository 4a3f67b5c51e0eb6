/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between two cores, timed. Two threads stand for the two processes: the caller is the one that copies, and the
 * other one is the peer. Both are pinned. tests/copies/measure.py calls these functions.
 */
#ifndef COPIES_SCENARIOS_H
#define COPIES_SCENARIOS_H

#include <stddef.h>
#include <stdint.h>

struct copies;

/* NULL: there is no such way or scenario. */
const char *copies_way_name(int way);
const char *copies_scenario_name(int scenario);
int copies_is_supported(int way);
void copies_copy(int way, void *to, const void *from, size_t length);

/* Memory for copies of up to `bytes`, and the peer thread. The calling thread is pinned to `here`. NULL: errno. */
struct copies *copies_open(int here, int there, size_t bytes);
void copies_close(struct copies *copies);

/*
 * Run one way in one scenario. Stores the nanoseconds of each copy, and of the read of its target that follows. 0, or
 * EILSEQ: the target differs from the source.
 */
int copies_measure(struct copies *copies, int scenario, int way, size_t bytes, int count, double *copied, double *read);

#endif
