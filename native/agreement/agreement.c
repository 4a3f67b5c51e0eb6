/* SPDX-License-Identifier: BSD-3-Clause */
#include "agreement/agreement.h"

#include <string.h>

#include "ofipy/check.h"

/* A ballot above this one is of a member that lies: none counts that far. The next ones are computed without overflow. */
#define BALLOT_MAX (UINT64_C(1) << 62)

/* ---------------------------------------------------------------------------------------------------------- messages */

static void send_message(struct ofpi_agreement *agreement, uint32_t rank, struct ofpi_agreement_message message,
                         const struct ofpi_agreement_value *value)
{
    message.rank = agreement->rank;
    message.has_values = value != NULL;
    agreement->send(agreement, rank, &message, value ? value->values : NULL);
}

static void send_decision(struct ofpi_agreement *agreement, uint32_t rank)
{
    struct ofpi_agreement_message message = {
        .kind = OFPI_AGREEMENT_DECIDE, .number = agreement->decided, .flags = agreement->decision.flags};

    send_message(agreement, rank, message, &agreement->decision);
}

static void send_state(struct ofpi_agreement *agreement, uint32_t rank, uint32_t kind, uint64_t number)
{
    send_message(agreement, rank, (struct ofpi_agreement_message){.kind = kind, .number = number}, NULL);
}

/* The coordinator sends the message of its phase. */
static void send_phase(struct ofpi_agreement *agreement, uint32_t rank)
{
    struct ofpi_agreement_message message = {.number = agreement->number, .ballot = agreement->ballot};

    if (agreement->phase == OFPI_PHASE_SPREADING) {
        send_decision(agreement, rank);
    } else if (agreement->phase == OFPI_PHASE_PREPARING) {
        message.kind = OFPI_AGREEMENT_PREPARE;
        send_message(agreement, rank, message, NULL);
    } else if (agreement->phase == OFPI_PHASE_PROPOSING) {
        message.kind = OFPI_AGREEMENT_PROPOSE;
        message.flags = agreement->proposal.flags;
        send_message(agreement, rank, message, &agreement->proposal);
    }
}

/* To all members that are not suspected and have not answered in this phase. */
static void send_phase_to_all(struct ofpi_agreement *agreement)
{
    for (uint32_t rank = 0; rank < agreement->size; rank++)
        if (!agreement->is_suspected[rank] && !agreement->has_answered[rank])
            send_phase(agreement, rank);
}

static void copy_value(const struct ofpi_agreement *agreement, struct ofpi_agreement_value *to, uint64_t flags,
                       const uint32_t *values)
{
    to->flags = flags;
    memcpy(to->values, values, agreement->size * sizeof(*values));
}

/* ------------------------------------------------------------------------------------------------------- coordinator */

/* The lowest member that is not suspected; the search ends at this member. */
static uint32_t find_coordinator(const struct ofpi_agreement *agreement)
{
    uint32_t rank = 0;

    OFP_CHECK(!agreement->is_suspected[agreement->rank]);
    while (agreement->is_suspected[rank])
        rank++;
    return rank;
}

static void start_phase(struct ofpi_agreement *agreement, enum ofpi_agreement_phase phase)
{
    agreement->phase = phase;
    memset(agreement->has_answered, 0, agreement->size);
    agreement->has_answered[agreement->rank] = 1;
    send_phase_to_all(agreement);
}

static void end_agreement(struct ofpi_agreement *agreement, enum ofpi_agreement_outcome outcome)
{
    agreement->is_open = false;
    agreement->outcome = outcome;
    agreement->phase = OFPI_PHASE_IDLE;
}

/* Whether all members that are not suspected have answered. */
static bool has_all_answers(const struct ofpi_agreement *agreement)
{
    for (uint32_t rank = 0; rank < agreement->size; rank++)
        if (!agreement->is_suspected[rank] && !agreement->has_answered[rank])
            return false;
    return true;
}

/* False: it has ended, since those that answered are too few. */
static bool check_majority(struct ofpi_agreement *agreement)
{
    uint64_t count = 0;

    for (uint32_t rank = 0; rank < agreement->size; rank++)
        count += agreement->has_answered[rank];
    if (!agreement->needs_majority || 2 * count > agreement->size)
        return true;
    end_agreement(agreement, OFPI_AGREEMENT_MINORITY);
    return false;
}

static void store_decision(struct ofpi_agreement *agreement, uint64_t flags, const uint32_t *values)
{
    copy_value(agreement, &agreement->decision, flags, values);
    agreement->decided = agreement->number;
    agreement->is_stable = false;
    end_agreement(agreement, OFPI_AGREEMENT_DECIDED);
    for (uint32_t rank = 0; rank < agreement->size; rank++)
        /* A member never suspects itself, even if the others have decided that it is dead. */
        if (values[rank] == OFPI_AGREEMENT_DEAD && rank != agreement->rank)
            agreement->is_suspected[rank] = 1;
}

static void start_spreading(struct ofpi_agreement *agreement);

/* All live members have answered: go from the current phase to the next one. */
static void advance_phase(struct ofpi_agreement *agreement)
{
    if (agreement->phase == OFPI_PHASE_IDLE || !has_all_answers(agreement))
        return;
    if (agreement->phase == OFPI_PHASE_SPREADING) {
        agreement->is_stable = true;
        agreement->phase = OFPI_PHASE_IDLE;
        for (uint32_t rank = 0; rank < agreement->size; rank++)
            if (!agreement->is_suspected[rank] && rank != agreement->rank)
                send_state(agreement, rank, OFPI_AGREEMENT_STABLE, agreement->decided);
        return;
    }
    if (!check_majority(agreement))
        return;
    if (agreement->phase == OFPI_PHASE_PREPARING) {
        /* A value that was accepted before may have been decided: the coordinator proposes it unchanged. */
        if (!agreement->proposal_ballot) {
            copy_value(agreement, &agreement->proposal, agreement->votes.flags, agreement->votes.values);
            for (uint32_t rank = 0; rank < agreement->size; rank++)
                if (!agreement->has_answered[rank])
                    agreement->proposal.values[rank] = OFPI_AGREEMENT_DEAD;
        }
        agreement->accepted_ballot = agreement->ballot;
        copy_value(agreement, &agreement->accepted, agreement->proposal.flags, agreement->proposal.values);
        start_phase(agreement, OFPI_PHASE_PROPOSING);
        advance_phase(agreement);
        return;
    }
    store_decision(agreement, agreement->proposal.flags, agreement->proposal.values);
    if (agreement->decision.values[agreement->rank] == OFPI_AGREEMENT_DEAD)
        agreement->outcome = OFPI_AGREEMENT_EXPELLED;
    start_spreading(agreement);
}

static void start_spreading(struct ofpi_agreement *agreement)
{
    start_phase(agreement, OFPI_PHASE_SPREADING);
    advance_phase(agreement);
}

/* A ballot above all that this member knows, and different from those of other members. */
static void start_ballot(struct ofpi_agreement *agreement)
{
    uint64_t highest = agreement->promised > agreement->seen ? agreement->promised : agreement->seen;

    agreement->ballot = (highest / agreement->size + 1) * agreement->size + agreement->rank;
    agreement->promised = agreement->ballot;
    agreement->votes.flags = agreement->flags;
    agreement->votes.values[agreement->rank] = agreement->value;
    agreement->proposal_ballot = agreement->accepted_ballot;
    if (agreement->accepted_ballot)
        copy_value(agreement, &agreement->proposal, agreement->accepted.flags, agreement->accepted.values);
    start_phase(agreement, OFPI_PHASE_PREPARING);
    advance_phase(agreement);
}

/* Coordinate if nobody lower can, or say to the coordinator that it is waited for. */
static void find_work(struct ofpi_agreement *agreement)
{
    uint32_t coordinator = find_coordinator(agreement);
    bool is_needed = agreement->is_open || (agreement->decided && !agreement->is_stable);

    if (!is_needed || agreement->phase != OFPI_PHASE_IDLE)
        return;
    if (coordinator != agreement->rank)
        send_state(agreement, coordinator, OFPI_AGREEMENT_POKE,
                   agreement->is_open ? agreement->number : agreement->decided);
    else if (agreement->is_open)
        start_ballot(agreement);
    else
        start_spreading(agreement);
}

/* ----------------------------------------------------------------------------------------------------------- members */

static void accept_ballot(struct ofpi_agreement *agreement, uint32_t rank, uint64_t ballot)
{
    struct ofpi_agreement_message message = {.kind = OFPI_AGREEMENT_PROMISE,
                                             .number = agreement->number,
                                             .ballot = ballot,
                                             .accepted = agreement->accepted_ballot,
                                             .value = agreement->value,
                                             .flags = agreement->flags,
                                             .accepted_flags = agreement->accepted.flags};

    agreement->promised = ballot;
    send_message(agreement, rank, message, agreement->accepted_ballot ? &agreement->accepted : NULL);
}

static void accept_proposal(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message,
                            const uint32_t *values)
{
    struct ofpi_agreement_message answer = {
        .kind = OFPI_AGREEMENT_ACCEPT, .number = agreement->number, .ballot = message->ballot};

    agreement->promised = agreement->accepted_ballot = message->ballot;
    copy_value(agreement, &agreement->accepted, message->flags, values);
    send_message(agreement, message->rank, answer, NULL);
}

/* PREPARE or PROPOSE of the agreement that is open. */
static void handle_ballot(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message,
                          const uint32_t *values)
{
    struct ofpi_agreement_message rejection = {.kind = OFPI_AGREEMENT_REJECT,
                                               .number = agreement->number,
                                               .ballot = agreement->promised,
                                               .accepted = message->ballot};

    if (message->ballot < agreement->promised || message->ballot % agreement->size != message->rank) {
        send_message(agreement, message->rank, rejection, NULL);
        return;
    }
    /* The own ballot cannot win any more. */
    agreement->phase = OFPI_PHASE_IDLE;
    if (message->kind == OFPI_AGREEMENT_PREPARE)
        accept_ballot(agreement, message->rank, message->ballot);
    else if (values)
        accept_proposal(agreement, message, values);
}

static void handle_promise(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message,
                           const uint32_t *values)
{
    uint32_t rank = message->rank;

    if (agreement->phase != OFPI_PHASE_PREPARING || message->ballot != agreement->ballot ||
        agreement->has_answered[rank] || message->value == OFPI_AGREEMENT_DEAD)
        return;
    agreement->has_answered[rank] = 1;
    agreement->votes.flags &= message->flags;
    agreement->votes.values[rank] = message->value;
    if (values && message->accepted > agreement->proposal_ballot) {
        agreement->proposal_ballot = message->accepted;
        copy_value(agreement, &agreement->proposal, message->accepted_flags, values);
    }
    advance_phase(agreement);
}

static void handle_reject(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message)
{
    if (message->accepted != agreement->ballot || message->ballot <= agreement->ballot)
        return;
    if (message->ballot > agreement->seen)
        agreement->seen = message->ballot;
    /* The next retry begins a higher one. */
    agreement->phase = OFPI_PHASE_IDLE;
}

static void handle_decide(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message,
                          const uint32_t *values)
{
    if (!values || message->number < agreement->decided)
        return;
    if (message->number > agreement->decided) {
        if (values[agreement->rank] == OFPI_AGREEMENT_DEAD) {
            end_agreement(agreement, OFPI_AGREEMENT_EXPELLED);
            return;
        }
        if (!agreement->is_open || message->number != agreement->number)
            return;
        store_decision(agreement, message->flags, values);
    }
    send_state(agreement, message->rank, OFPI_AGREEMENT_ACKNOWLEDGE, message->number);
    if (find_coordinator(agreement) == agreement->rank && !agreement->is_open && !agreement->is_stable &&
        agreement->phase == OFPI_PHASE_IDLE)
        start_spreading(agreement);
}

static void handle_acknowledge(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message)
{
    if (agreement->phase != OFPI_PHASE_SPREADING || message->number != agreement->decided)
        return;
    agreement->has_answered[message->rank] = 1;
    advance_phase(agreement);
}

/* A message about an agreement that is decided here. True: it was one. */
static bool serve_decision(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message)
{
    if (message->number > agreement->decided)
        return false;
    if (message->kind == OFPI_AGREEMENT_POKE || message->kind == OFPI_AGREEMENT_PREPARE ||
        message->kind == OFPI_AGREEMENT_PROPOSE) {
        send_decision(agreement, message->rank);
        if (agreement->is_stable)
            send_state(agreement, message->rank, OFPI_AGREEMENT_STABLE, agreement->decided);
    }
    return true;
}

static bool has_left(const struct ofpi_agreement *agreement)
{
    return agreement->outcome != OFPI_AGREEMENT_NONE && agreement->outcome != OFPI_AGREEMENT_DECIDED;
}

/* A message of a ballot, or of a member that waits for one. */
static void handle_round(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message,
                         const uint32_t *values)
{
    if (serve_decision(agreement, message))
        return;
    if (has_left(agreement)) {
        send_state(agreement, message->rank, OFPI_AGREEMENT_LEFT, message->number);
        return;
    }
    if (!agreement->is_open || message->number != agreement->number) {
        if (message->kind == OFPI_AGREEMENT_PREPARE && message->number == agreement->number + 1 &&
            message->ballot > agreement->next_ballot && message->ballot % agreement->size == message->rank)
            agreement->next_ballot = message->ballot;
        return;
    }
    if (message->kind == OFPI_AGREEMENT_POKE) {
        if (!agreement->has_answered[message->rank])
            send_phase(agreement, message->rank);
    } else if (message->kind == OFPI_AGREEMENT_PREPARE || message->kind == OFPI_AGREEMENT_PROPOSE) {
        handle_ballot(agreement, message, values);
    } else if (message->kind == OFPI_AGREEMENT_PROMISE) {
        handle_promise(agreement, message, values);
    } else if (message->kind == OFPI_AGREEMENT_REJECT) {
        handle_reject(agreement, message);
    } else if (agreement->phase == OFPI_PHASE_PROPOSING && message->ballot == agreement->ballot) {
        agreement->has_answered[message->rank] = 1;
        advance_phase(agreement);
    }
}

void ofpi_agreement_receive(struct ofpi_agreement *agreement, const struct ofpi_agreement_message *message,
                            const uint32_t *values)
{
    OFP_CHECK(message->rank < agreement->size && message->rank != agreement->rank);
    if (message->ballot > BALLOT_MAX || message->accepted > BALLOT_MAX)
        return;
    switch (message->kind) {
    case OFPI_AGREEMENT_DECIDE:
        handle_decide(agreement, message, values);
        break;
    case OFPI_AGREEMENT_ACKNOWLEDGE:
        handle_acknowledge(agreement, message);
        break;
    case OFPI_AGREEMENT_STABLE:
        if (message->number == agreement->decided)
            agreement->is_stable = true;
        break;
    case OFPI_AGREEMENT_LEFT:
        ofpi_agreement_mark_suspected(agreement, message->rank);
        break;
    default:
        if (message->kind >= OFPI_AGREEMENT_POKE && message->kind <= OFPI_AGREEMENT_ACCEPT)
            handle_round(agreement, message, values);
    }
}

/* ------------------------------------------------------------------------------------------------------ begin and end */

uint64_t ofpi_agreement_compute_size(uint32_t size) { return (uint64_t)size * (4 * sizeof(uint32_t) + 2); }

void ofpi_agreement_init(struct ofpi_agreement *agreement, uint32_t size, uint32_t rank, bool needs_majority,
                         void *memory)
{
    uint32_t *values = memory;

    agreement->size = size;
    agreement->rank = rank;
    agreement->needs_majority = needs_majority;
    agreement->accepted.values = values;
    agreement->votes.values = values + size;
    agreement->proposal.values = values + 2 * (uint64_t)size;
    agreement->decision.values = values + 3 * (uint64_t)size;
    agreement->has_answered = (uint8_t *)(values + 4 * (uint64_t)size);
    agreement->is_suspected = agreement->has_answered + size;
}

void ofpi_agreement_start(struct ofpi_agreement *agreement, uint64_t flags, uint32_t value)
{
    uint64_t ballot = agreement->next_ballot;

    OFP_CHECK(!agreement->is_open && !has_left(agreement) && value != OFPI_AGREEMENT_DEAD);
    agreement->number++;
    agreement->is_open = true;
    agreement->outcome = OFPI_AGREEMENT_NONE;
    agreement->flags = flags;
    agreement->value = value;
    agreement->phase = OFPI_PHASE_IDLE;
    agreement->promised = agreement->accepted_ballot = agreement->ballot = agreement->seen = agreement->next_ballot = 0;
    /* A connection that was lost may be back. */
    for (uint32_t rank = 0; rank < agreement->size; rank++)
        agreement->is_suspected[rank] = agreement->decided && agreement->decision.values[rank] == OFPI_AGREEMENT_DEAD;
    if (ballot)
        accept_ballot(agreement, (uint32_t)(ballot % agreement->size), ballot);
    find_work(agreement);
}

void ofpi_agreement_mark_suspected(struct ofpi_agreement *agreement, uint32_t rank)
{
    if (rank == agreement->rank || agreement->is_suspected[rank])
        return;
    agreement->is_suspected[rank] = 1;
    advance_phase(agreement);
    find_work(agreement);
}

void ofpi_agreement_retry(struct ofpi_agreement *agreement)
{
    if (agreement->phase != OFPI_PHASE_IDLE)
        send_phase_to_all(agreement);
    else
        find_work(agreement);
}

void ofpi_agreement_abandon(struct ofpi_agreement *agreement)
{
    if (!agreement->is_open)
        return;
    end_agreement(agreement, OFPI_AGREEMENT_ABANDONED);
    for (uint32_t rank = 0; rank < agreement->size; rank++)
        if (rank != agreement->rank && !agreement->is_suspected[rank])
            send_state(agreement, rank, OFPI_AGREEMENT_LEFT, agreement->number);
}

bool ofpi_agreement_is_pending(const struct ofpi_agreement *agreement)
{
    return agreement->is_open || (agreement->decided && !agreement->is_stable);
}
