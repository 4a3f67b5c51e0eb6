/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring what it costs to way the payload of messages, as choice.h wants to know it: the clock, and what counts. */
#ifndef SHM_COST_H
#define SHM_COST_H

#include "message/choice.h"
#include "shm.h"

/* Of one message. It stays where it is from begin to end or drop. */
struct shm_cost {
    struct shm_choice *choice; /* the link's; NULL: it is not measured */
    uint64_t begun, length;
    enum ofp_moved method;
    bool trial;
};

/* The measurements of one link. NULL while it has moved no large message; freed with the link. */
struct shm_costs;

/*
 * Choose the copy method of a message, of those whose bits are set in `ways`. `arena`: the sender's memory lies in one. `sleeps`: so
 * does the sender.
 */
enum ofp_moved shm_cost_start(struct shm_link *link, struct shm_cost *cost, uint64_t length, bool arena, bool sleeps,
                              uint32_t methods);
/* What `length` bytes of the message are expected to cost by a copy method, ns. A guess as long as nothing is known. */
uint64_t shm_cost_compute(const struct shm_cost *cost, enum ofp_moved method, uint64_t length);
/* The payload is here. */
void shm_cost_end(struct shm_link *link, struct shm_cost *cost);
/* The payload does not come, or comes by another way after all. */
void shm_cost_discard(struct shm_link *link, struct shm_cost *cost);
/* A trial of the pipeline is under way, and this message is not part of it: it waits, or would be measured with it. */
bool shm_cost_needs_deferral(const struct shm_link *link, uint64_t length, bool arena);

#endif
