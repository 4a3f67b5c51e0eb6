/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All members of a collective, played against each other. A transfer happens only when both members are in the rounds
 * that have it, so a schedule that needs a buffer between them would stop; and each round is checked for steps that
 * would disturb each other.
 */
#ifndef SCHEDULE_MODEL_H
#define SCHEDULE_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "schedule/schedule.h"

/* An element of a reduction is the set of members that contributed to it: a contribution that comes twice is found. */
__extension__ typedef unsigned __int128 element_t;
#define ELEMENT (sizeof(element_t))

struct member {
    struct ofpi_plan plan;
    char *memory[3]; /* by enum ofpi_buffer; owned by the test, except TEMP */
    uint64_t round;
    struct ofpi_step steps[OFPI_STEPS_MAX];
    bool done[OFPI_STEPS_MAX];
    int count; /* -1: it has finished */
};

struct totals {
    uint64_t messages, bytes;
};

static inline bool is_transfer(const struct ofpi_step *step) { return step->kind != OFPI_STEP_COPY; }

static inline char *memory_of_place(const struct member *member, struct ofpi_place place)
{
    return member->memory[place.buffer] + place.offset;
}

static inline bool do_overlap(const char *one, const char *other, uint64_t length, uint64_t other_length)
{
    return one < other + other_length && other < one + length;
}

/* No transfer writes what another transfer of the round reads or writes, or reads itself from another place. */
static inline void check_round(const struct member *member)
{
    for (int i = 0; i < member->count; i++) {
        const struct ofpi_step *step = &member->steps[i];
        const char *to = memory_of_place(member, step->to);

        if (!is_transfer(step) || step->kind == OFPI_STEP_SEND || !step->length)
            continue;
        for (int j = 0; j < member->count; j++) {
            const struct ofpi_step *other = &member->steps[j];

            if (!is_transfer(other))
                continue;
            if (other->kind != OFPI_STEP_RECEIVE && (i != j || memory_of_place(member, other->from) != to))
                assert_false(do_overlap(to, memory_of_place(member, other->from), step->length, other->length));
            if (i != j && other->kind != OFPI_STEP_SEND)
                assert_false(do_overlap(to, memory_of_place(member, other->to), step->length, other->length));
        }
    }
}

/* A copy that is apart writes nothing that a transfer reads or writes, and reads nothing that one writes. */
static inline void check_copy_apart(const struct member *member, const struct ofpi_step *copy)
{
    const char *to = memory_of_place(member, copy->to), *from = memory_of_place(member, copy->from);

    for (int i = 0; i < member->count; i++) {
        const struct ofpi_step *step = &member->steps[i];
        bool is_written = step->kind != OFPI_STEP_SEND;
        const char *other = memory_of_place(member, is_written ? step->to : step->from);

        if (step == copy)
            continue;
        assert_false(step->apart);
        assert_false(to != from && do_overlap(to, other, copy->length, step->length));
        assert_false(is_written && do_overlap(from, other, copy->length, step->length));
    }
}

/* Copy what is apart: now, before the transfers, at every other member, and with the other copies elsewhere. */
static inline void copy_apart(struct member *member)
{
    for (int i = 0; i < member->count; i++) {
        const struct ofpi_step *step = &member->steps[i];

        if (!step->apart)
            continue;
        assert_int_equal(step->kind, OFPI_STEP_COPY);
        check_copy_apart(member, step);
        if ((member->plan.rank + member->round) % 2)
            continue;
        memmove(memory_of_place(member, step->to), memory_of_place(member, step->from), step->length);
        member->done[i] = true;
    }
}

static inline void advance_member(struct member *member)
{
    member->count = ofpi_plan_build_round(&member->plan, member->round, member->steps);
    assert_true(member->count <= (int)OFPI_STEPS_MAX);
    memset(member->done, 0, sizeof(member->done));
    check_round(member);
    copy_apart(member);
}

/* End the round if all its transfers have ended. */
static inline bool end_round(struct member *member)
{
    for (int i = 0; i < member->count; i++)
        if (is_transfer(&member->steps[i]) && !member->done[i])
            return false;
    for (int i = 0; i < member->count; i++)
        if (!is_transfer(&member->steps[i]) && !member->done[i])
            memmove(memory_of_place(member, member->steps[i].to), memory_of_place(member, member->steps[i].from),
                    member->steps[i].length);
    member->round++;
    advance_member(member);
    return true;
}

static inline void reduce_message(struct member *member, const struct ofpi_step *step, const char *message)
{
    for (uint64_t i = 0; i < step->length; i += ELEMENT) {
        element_t mine, theirs;

        memcpy(&mine, memory_of_place(member, step->from) + i, ELEMENT);
        memcpy(&theirs, message + i, ELEMENT);
        assert_true((mine & theirs) == 0); /* nobody contributes twice */
        mine |= theirs;
        memcpy(memory_of_place(member, step->to) + i, &mine, ELEMENT);
    }
}

/* The first receive from `rank` that has not ended; -1: none in this round. */
static inline int find_receive(const struct member *member, uint32_t rank)
{
    for (int i = 0; i < member->count; i++) {
        const struct ofpi_step *step = &member->steps[i];

        if (!member->done[i] && step->rank == rank &&
            (step->kind == OFPI_STEP_RECEIVE || step->kind == OFPI_STEP_REDUCE))
            return i;
    }
    return -1;
}

static inline bool deliver_sends(struct member *members, uint32_t rank, struct totals *totals)
{
    struct member *member = &members[rank];
    bool moved = false;

    for (int i = 0; i < member->count; i++) {
        const struct ofpi_step *step = &member->steps[i], *matched;
        struct member *to = &members[step->rank];
        const char *message = memory_of_place(member, step->from);
        int found;

        if (step->kind != OFPI_STEP_SEND || member->done[i])
            continue;
        assert_true(step->rank < member->plan.size && step->rank != rank);
        found = find_receive(to, rank);
        if (found < 0)
            continue;
        matched = &to->steps[found];
        assert_int_equal(matched->length, step->length);
        assert_int_equal(step->reduced, matched->kind == OFPI_STEP_REDUCE);
        if (step->reduced)
            reduce_message(to, matched, message);
        else if (step->length)
            memcpy(memory_of_place(to, matched->to), message, step->length);
        member->done[i] = to->done[found] = moved = true;
        totals->messages++;
        totals->bytes += step->length;
    }
    return moved;
}

/* Play all members until all have finished. Their IN and OUT are there; TEMP is allocated here, of its exact size. */
static inline struct totals play(struct member *members)
{
    uint32_t size = members[0].plan.size, running = size;
    struct totals totals = {0};

    for (uint32_t rank = 0; rank < size; rank++) {
        members[rank].memory[OFPI_TEMP] = malloc(ofpi_plan_compute_temporary(&members[rank].plan) + 1);
        assert_non_null(members[rank].memory[OFPI_TEMP]);
        members[rank].round = 0;
        advance_member(&members[rank]);
        running -= members[rank].count < 0;
    }
    while (running) {
        bool moved = false;

        for (uint32_t rank = 0; rank < size; rank++) {
            if (members[rank].count < 0)
                continue;
            moved |= deliver_sends(members, rank, &totals);
            while (members[rank].count >= 0 && end_round(&members[rank]))
                moved = true;
            running -= members[rank].count < 0;
        }
        assert_true(moved); /* else members wait for each other */
    }
    for (uint32_t rank = 0; rank < size; rank++)
        free(members[rank].memory[OFPI_TEMP]);
    return totals;
}

#endif
