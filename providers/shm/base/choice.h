/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice between methods that move the same bytes: copy methods of a large message, or stores of a remote write.
 * The fastest method depends on the processor, on the process that wrote the memory last and on the load of the
 * machine. So the cost of each method is measured, and the cheapest is used. This is a pure rule, without clock and
 * peer: the caller requests a method and stores what it cost. The caller numbers its methods from 0.
 */
#ifndef SHM_CHOICE_H
#define SHM_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#define SHM_METHODS_MAX 3
#define SHM_METHOD_BIT(method) (1u << (method))

/* The cost of a method is the median of this many messages. */
#define SHM_CHOICE_SAMPLES 3

/* Messages of one trial of each method; 0: there is no method of this number. */
struct shm_choice_trials {
    uint8_t lengths[SHM_METHODS_MAX];
};

/*
 * Costs of messages of one size class from or to one peer. Zeroed: nothing is known, and the first method is used; the
 * caller may set `current` to another one. Owned by the link, under its domain's lock.
 */
struct shm_choice {
    uint32_t costs[SHM_METHODS_MAX][SHM_CHOICE_SAMPLES]; /* ps per KiB, the latest first; 0: not known */
    uint8_t current;                                     /* the method when no trial runs */
    uint8_t tried;                                       /* the method of the last trial */
    uint8_t left;                                        /* messages that this trial still needs */
    uint8_t learned;                                     /* messages of that trial whose cost is known */
    uint32_t since;                                      /* messages by the current method since that trial */
    int64_t allowance; /* loss that trials are still allowed, ps per KiB; negative: they have lost more */
};

/*
 * The method for the next message, of those whose bits are set in `methods`. `alone`: no trial begins, since no message
 * follows that could profit. `*trial`: the message is part of a trial.
 */
uint32_t shm_choice_choose_method(struct shm_choice *choice, const struct shm_choice_trials *trials, uint32_t methods,
                                  bool alone, bool *trial);

/* The method of messages that are not part of a trial. */
uint32_t shm_choice_find_method(const struct shm_choice *choice, uint32_t methods);

/* Store the cost of a message of `length` bytes, more than 0, that was moved in `ns`. */
void shm_choice_store_cost(struct shm_choice *choice, uint32_t method, bool trial, uint64_t length, uint64_t ns);

/* Whether the next message belongs to a trial that has begun. */
bool shm_choice_has_open_trial(const struct shm_choice *choice);

/* The expected cost of `length` bytes by a copy method, ns; 0: not known. */
uint64_t shm_choice_compute_cost(const struct shm_choice *choice, uint32_t method, uint64_t length);

#endif
