/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of a round that is being built, and the places of blocks; for the files of this folder. */
#ifndef OFPI_SCHEDULE_STEPS_H
#define OFPI_SCHEDULE_STEPS_H

#include "ofipy/check.h"
#include "schedule/plan.h"

/* A round under construction. */
struct ofpi_round {
    struct ofpi_step *steps;
    int count;
};

static inline struct ofpi_place ofpi_place_of_in(uint64_t offset) { return (struct ofpi_place){OFPI_IN, offset}; }
static inline struct ofpi_place ofpi_place_of_out(uint64_t offset) { return (struct ofpi_place){OFPI_OUT, offset}; }
static inline struct ofpi_place ofpi_place_of_temp(uint64_t offset) { return (struct ofpi_place){OFPI_TEMP, offset}; }

static inline void ofpi_round_add_step(struct ofpi_round *round, struct ofpi_step step)
{
    OFP_CHECK(round->count < (int)OFPI_STEPS_MAX);
    round->steps[round->count++] = step;
}

/* Nothing is sent, received or copied for an empty block: both sides know that it is empty. */
static inline void ofpi_round_add_send(struct ofpi_round *round, uint32_t rank, struct ofpi_place from, uint64_t length)
{
    if (length)
        ofpi_round_add_step(round,
                            (struct ofpi_step){.kind = OFPI_STEP_SEND, .rank = rank, .from = from, .length = length});
}
static inline void ofpi_round_add_reduced_send(struct ofpi_round *round, uint32_t rank, struct ofpi_place from,
                                               uint64_t length)
{
    if (length)
        ofpi_round_add_step(
            round,
            (struct ofpi_step){.kind = OFPI_STEP_SEND, .rank = rank, .reduced = true, .from = from, .length = length});
}
static inline void ofpi_round_add_receive(struct ofpi_round *round, uint32_t rank, struct ofpi_place to,
                                          uint64_t length)
{
    if (length)
        ofpi_round_add_step(round,
                            (struct ofpi_step){.kind = OFPI_STEP_RECEIVE, .rank = rank, .to = to, .length = length});
}
static inline void ofpi_round_add_reduction(struct ofpi_round *round, uint32_t rank, bool lower, struct ofpi_place to,
                                            struct ofpi_place from, uint64_t length)
{
    if (length)
        ofpi_round_add_step(
            round,
            (struct ofpi_step){
                .kind = OFPI_STEP_REDUCE, .rank = rank, .lower = lower, .from = from, .to = to, .length = length});
}
static inline void ofpi_round_add_copy(struct ofpi_round *round, struct ofpi_place to, struct ofpi_place from,
                                       uint64_t length)
{
    if (length)
        ofpi_round_add_step(round,
                            (struct ofpi_step){.kind = OFPI_STEP_COPY, .from = from, .to = to, .length = length});
}
/* The member's own block, which no transfer of the round writes; those that read it read `from`. */
static inline void ofpi_round_add_own_copy(struct ofpi_round *round, struct ofpi_place to, struct ofpi_place from,
                                           uint64_t length)
{
    if (length)
        ofpi_round_add_step(
            round, (struct ofpi_step){.kind = OFPI_STEP_COPY, .apart = true, .from = from, .to = to, .length = length});
}

/* Bytes of the vector, or of a block where all have one length. */
static inline uint64_t ofpi_plan_count_bytes(const struct ofpi_plan *plan) { return plan->count * plan->element; }

/* Ranks around the ring. */
static inline uint32_t ofpi_rank_find_behind(const struct ofpi_plan *plan, uint64_t distance)
{
    return (uint32_t)((plan->rank + distance) % plan->size);
}
static inline uint32_t ofpi_rank_find_before(const struct ofpi_plan *plan, uint64_t distance)
{
    return (uint32_t)((plan->rank + plan->size - distance % plan->size) % plan->size);
}
/* Trees are numbered from the root, which is 0. */
static inline uint32_t ofpi_plan_find_number(const struct ofpi_plan *plan)
{
    return (uint32_t)(((uint64_t)plan->rank + plan->size - plan->root) % plan->size);
}
static inline uint32_t ofpi_rank_find_in_tree(const struct ofpi_plan *plan, uint64_t number)
{
    return (uint32_t)((number + plan->root) % plan->size);
}

/* Where block `number` begins; `number` may be `size`. */
static inline uint64_t ofpi_source_compute_offset(const struct ofpi_plan *plan, uint32_t number)
{
    return plan->sources ? plan->sources[number] : number * ofpi_plan_count_bytes(plan);
}
static inline uint64_t ofpi_target_compute_offset(const struct ofpi_plan *plan, uint32_t number)
{
    return plan->targets ? plan->targets[number] : number * ofpi_plan_count_bytes(plan);
}
static inline uint64_t ofpi_source_compute_length(const struct ofpi_plan *plan, uint32_t number)
{
    return ofpi_source_compute_offset(plan, number + 1) - ofpi_source_compute_offset(plan, number);
}
static inline uint64_t ofpi_target_compute_length(const struct ofpi_plan *plan, uint32_t number)
{
    return ofpi_target_compute_offset(plan, number + 1) - ofpi_target_compute_offset(plan, number);
}

/* Byte offset of part `number` of `parts` of the vector; whole elements, and parts that differ by at most one. */
static inline uint64_t ofpi_part_compute_offset(const struct ofpi_plan *plan, uint32_t number, uint32_t parts)
{
    uint64_t each = plan->count / parts, more = plan->count % parts;

    return (each * number + (number < more ? number : more)) * plan->element;
}
static inline uint64_t ofpi_part_compute_length(const struct ofpi_plan *plan, uint32_t number, uint32_t parts)
{
    return ofpi_part_compute_offset(plan, number + 1, parts) - ofpi_part_compute_offset(plan, number, parts);
}

/* Rounds of doubling until `size` is reached. */
static inline uint32_t ofpi_doublings_count(uint32_t size)
{
    return size <= 1 ? 0 : 32u - (uint32_t)__builtin_clz(size - 1);
}
static inline uint32_t ofpi_power_find_exponent(uint32_t size) { return 31u - (uint32_t)__builtin_clz(size); }

/*
 * A reduction of a short vector writes its intermediate results to OUT and TEMP in turn, since the previous one is still
 * being sent. The place of result `number`, from 0.
 */
static inline struct ofpi_place ofpi_result_find_place(const struct ofpi_plan *plan, uint32_t number)
{
    return (number + plan->in_place) & 1 ? ofpi_place_of_temp(0) : ofpi_place_of_out(0);
}
/* The place of the result before result `number`; before the first one it is IN. */
static inline struct ofpi_place ofpi_result_find_before(const struct ofpi_plan *plan, uint32_t number)
{
    return number ? ofpi_result_find_place(plan, number - 1) : ofpi_place_of_in(0);
}

#endif
