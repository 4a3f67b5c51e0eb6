/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way moves the payload of a large message. Which is the fastest depends on the processor, on who wrote the memory last
 * and on what else the machine does; so each way's cost is measured, and the cheapest is taken.
 *
 * A pure rule: it has no clock and knows no peer. Whoever moves the payload asks for a way and tells what it cost.
 */
#ifndef SHM_CHOICE_H
#define SHM_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ofipy/objects.h"

#define SHM_METHOD_BIT(method) (1u << (method))

/* The cost of a way is the median of so many messages. */
#define SHM_CHOICE_SAMPLES 3

/* Costs of messages of one size from one peer. Zeroed: nothing is known. Owned by the link, under its domain's lock. */
struct shm_choice {
    uint32_t costs[OFP_MOVED_WAYS][SHM_CHOICE_SAMPLES]; /* ps for each KiB, the last first; 0: not known */
    uint8_t current;                                    /* the way that is taken when none is tried */
    uint8_t tried;                                      /* the way that was tried last */
    uint8_t left;                                       /* messages that its trial has still to take */
    uint8_t learned;                                    /* messages of that trial whose cost is known */
    uint32_t since;                                     /* messages that took the current way since */
    int64_t allowance; /* what trials may lose, ps for each KiB; negative: they have lost more */
};

/*
 * The way for the next message, of those whose bits are set in `ways`. `alone`: no trial begins, since no message follows that
 * could profit. `*trial`: the message is part of a trial.
 */
enum ofp_moved shm_choice_choose_method(struct shm_choice *choice, uint32_t methods, bool alone, bool *trial);

/* A message of `length` bytes, more than 0, was moved in `ns`. */
void shm_choice_store_cost(struct shm_choice *choice, enum ofp_moved method, bool trial, uint64_t length, uint64_t ns);

/* The next message belongs to a trial that has begun. */
bool shm_choice_has_open_trial(const struct shm_choice *choice);

/* The expected cost of `length` bytes by a copy method, ns; 0: not known. */
uint64_t shm_choice_compute_cost(const struct shm_choice *choice, enum ofp_moved method, uint64_t length);

#endif
