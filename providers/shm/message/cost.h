/* SPDX-License-Identifier: BSD-3-Clause */
/* Measure the cost of moving payload for choice.h: the clock, and the rule of which messages count. */
#ifndef SHM_COST_H
#define SHM_COST_H

#include "base/choice.h"
#include "shm.h"

/* The measurement of one message. Its address stays the same from start to end or discard. */
struct shm_cost {
    struct shm_choice *choice; /* owned by the link; NULL: not measured */
    uint64_t begun, length;
    enum ofp_moved method;
    bool trial;
};

/* The measurements of one link. NULL while it has moved no large message; freed with the link. */
struct shm_costs;

/*
 * Choose the copy method of a message, of those whose bits are set in `methods`, and start the measurement. `arena`:
 * the sender's memory is in an arena. `sleeps`: the sender sleeps.
 */
enum ofp_moved shm_cost_start(struct shm_link *link, struct shm_cost *cost, uint64_t length, bool arena, bool sleeps,
                              uint32_t methods);
/* The copy method that shm_cost_start would choose now, without a trial. *expected: ns; 0: not measured. */
enum ofp_moved shm_cost_find_method(const struct shm_link *link, uint64_t length, bool arena, bool sleeps,
                                    uint32_t methods, uint64_t *expected);
/* The expected cost of `length` bytes by a copy method, ns. A guess while no cost is known. */
uint64_t shm_cost_compute(const struct shm_cost *cost, enum ofp_moved method, uint64_t length);
/* The payload has been moved: store its cost. */
void shm_cost_end(struct shm_link *link, struct shm_cost *cost);
/* The payload was not moved, or by another method: the measurement does not count. */
void shm_cost_discard(struct shm_link *link, struct shm_cost *cost);
/*
 * Whether the message has to wait for the end of a trial of the pipeline to which it does not belong: otherwise it
 * would disturb the measurement.
 */
bool shm_cost_needs_deferral(const struct shm_link *link, uint64_t length, bool arena);

#endif
