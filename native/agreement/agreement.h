/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the members of a group agree on a value although members die: docs/explanation/collectives.md. Pure: what happens
 * is passed in, messages leave through one function, and nothing waits or reads a clock.
 *
 * Agreements of a group are numbered from 1. A member that has decided one keeps the decision and answers with it until
 * it decides the next one.
 */
#ifndef OFPI_AGREEMENT_H
#define OFPI_AGREEMENT_H

#include <stdbool.h>
#include <stdint.h>

/* In a decision, in place of the value of a member: it is dead. */
#define OFPI_AGREEMENT_DEAD UINT32_MAX

enum ofpi_agreement_kind {
    OFPI_AGREEMENT_POKE = 16, /* the sender waits for the receiver as coordinator */
    OFPI_AGREEMENT_PREPARE,   /* the sender coordinates `ballot` */
    OFPI_AGREEMENT_PROMISE,   /* `flags` and `value` of the sender; values: what it accepted in ballot `accepted` */
    OFPI_AGREEMENT_REJECT,    /* of ballot `accepted`: the sender has promised `ballot` */
    OFPI_AGREEMENT_PROPOSE,   /* values */
    OFPI_AGREEMENT_ACCEPT,
    OFPI_AGREEMENT_DECIDE, /* values */
    OFPI_AGREEMENT_ACKNOWLEDGE,
    OFPI_AGREEMENT_STABLE, /* all live members have the decision */
    OFPI_AGREEMENT_LEFT    /* the sender takes part no more */
};

/* All members, then the values by rank where the kind has some. Little-endian hosts alone form a job. */
struct ofpi_agreement_message {
    uint32_t kind;  /* enum ofpi_agreement_kind */
    uint32_t rank;  /* of the sender */
    uint32_t value; /* PROMISE: not OFPI_AGREEMENT_DEAD */
    uint32_t has_values;
    uint64_t number; /* of the agreement */
    uint64_t ballot, accepted;
    uint64_t flags;          /* PROMISE: the sender's; PROPOSE, DECIDE: of all members, combined by and */
    uint64_t accepted_flags; /* PROMISE: of what it accepted */
};

enum ofpi_agreement_outcome {
    OFPI_AGREEMENT_NONE, /* the agreement runs, or none has started */
    OFPI_AGREEMENT_DECIDED,
    OFPI_AGREEMENT_EXPELLED, /* the others have decided that this member is dead */
    OFPI_AGREEMENT_MINORITY, /* too few members can be reached */
    OFPI_AGREEMENT_ABANDONED
};

enum ofpi_agreement_phase {
    OFPI_PHASE_IDLE, /* this member coordinates nothing */
    OFPI_PHASE_PREPARING,
    OFPI_PHASE_PROPOSING,
    OFPI_PHASE_SPREADING /* the decision */
};

struct ofpi_agreement_value {
    uint64_t flags;
    uint32_t *values; /* by rank */
};

struct ofpi_agreement {
    uint32_t size, rank;
    bool needs_majority; /* of all members of the group, dead ones too */
    /* `values` is NULL if the message has none. Must not call back. */
    void (*send)(struct ofpi_agreement *agreement, uint32_t rank, const struct ofpi_agreement_message *message,
                 const uint32_t *values);

    uint64_t number; /* of the last agreement that was started here */
    bool is_open;    /* agreement `number` is not decided */
    enum ofpi_agreement_outcome outcome;
    uint64_t flags; /* the own ones */
    uint32_t value;
    uint64_t next_ballot; /* of a coordinator of agreement `number` + 1, which this member has not started; 0: none */

    uint64_t promised, accepted_ballot;
    struct ofpi_agreement_value accepted;

    enum ofpi_agreement_phase phase;
    uint64_t ballot, seen; /* the own one, 0: none; the highest of others */
    struct ofpi_agreement_value votes, proposal;
    uint64_t proposal_ballot; /* in which `proposal` was accepted somewhere; 0: it is new */
    uint8_t *has_answered;    /* in this phase */
    uint8_t *is_suspected;

    uint64_t decided; /* number of the last decision; 0: none */
    struct ofpi_agreement_value decision;
    bool is_stable; /* all live members are known to have it */
};

/* Bytes of the memory that a group of this size needs. */
uint64_t ofpi_agreement_compute_size(uint32_t size);
/* `memory` is zero, aligned to 8 bytes, and stays the caller's. */
void ofpi_agreement_init(struct ofpi_agreement *agreement, uint32_t size, uint32_t rank, bool needs_majority,
                         void *memory);
/* None is open, and no outcome but DECIDED was reached before. */
void ofpi_agreement_start(struct ofpi_agreement *agreement, uint64_t flags, uint32_t value);
/* A message of another member, with values if and only if it says so. Any content is safe. */
void ofpi_agreement_receive(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message,
                            const uint32_t *values);
/* A message to this member could not be delivered. */
void ofpi_agreement_mark_suspected(struct ofpi_agreement *agreement, uint32_t rank);
/* Some time has passed: send again what was not answered. */
void ofpi_agreement_retry(struct ofpi_agreement *agreement);
/* Take part no more; the last decision can still be had. */
void ofpi_agreement_abandon(struct ofpi_agreement *agreement);
/* Whether others may still need this member's decision or vote. */
bool ofpi_agreement_is_pending(const struct ofpi_agreement *agreement);

#endif
