/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives with a root: broadcast, reduce, gather and scatter. */
#include "schedule/tree.h"

/* Of a binomial tree: how many numbers the subtree of `number` has below `size`, itself included. */
static uint32_t count_subtree(uint32_t number, uint32_t size)
{
    uint32_t full = number & (0u - number), rest = size - number;

    return number && full < rest ? full : rest;
}

/* The largest distance to a child of `number`, in powers of two; 0: it has none. */
static uint32_t find_first_child(uint32_t number, uint32_t size)
{
    uint32_t count = count_subtree(number, size);

    return count > 1 ? 1u << (ofpi_doublings_count(count) - 1) : 0;
}

static uint32_t find_parent(uint32_t number) { return number & (number - 1); }

/* -------------------------------------------------------------------------------------------------------- broadcast */

static bool build_binomial_broadcast(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t number = ofpi_plan_find_number(plan);
    uint64_t length = ofpi_plan_count_bytes(plan);

    if (round > 1)
        return false;
    if (round == 0 && number)
        ofpi_round_add_receive(result, ofpi_rank_find_in_tree(plan, find_parent(number)), ofpi_place_of_out(0), length);
    /* The child with the largest subtree first. */
    for (uint32_t child = round ? find_first_child(number, plan->size) : 0; child; child >>= 1)
        ofpi_round_add_send(result, ofpi_rank_find_in_tree(plan, number + child), ofpi_place_of_out(0), length);
    return true;
}

/* While a piece arrives, the one before it leaves to both children of a binary tree. */
static bool build_pipelined_broadcast(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint64_t length = ofpi_plan_count_bytes(plan);
    uint64_t pieces = (length + OFPI_PIPELINE_PIECE - 1) / OFPI_PIPELINE_PIECE, number = ofpi_plan_find_number(plan);

    if (round > pieces)
        return false;
    for (uint64_t piece = round ? round - 1 : 0; piece <= round && piece < pieces; piece++) {
        uint64_t offset = piece * OFPI_PIPELINE_PIECE;
        uint64_t here = length - offset < OFPI_PIPELINE_PIECE ? length - offset : OFPI_PIPELINE_PIECE;

        if (piece == round) {
            if (number)
                ofpi_round_add_receive(result, ofpi_rank_find_in_tree(plan, (number - 1) / 2),
                                       ofpi_place_of_out(offset), here);
            continue;
        }
        for (uint64_t child = 2 * number + 1; child <= 2 * number + 2 && child < plan->size; child++)
            ofpi_round_add_send(result, ofpi_rank_find_in_tree(plan, child), ofpi_place_of_out(offset), here);
    }
    return true;
}

bool ofpi_broadcast_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    return plan->algorithm == OFPI_BINOMIAL ? build_binomial_broadcast(plan, round, result)
                                            : build_pipelined_broadcast(plan, round, result);
}

/* ----------------------------------------------------------------------------------------------------------- reduce */

/* Round k joins subtrees of 2^k members. */
static bool build_binomial_reduce(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t number = ofpi_plan_find_number(plan), distance = 1u << (round & 31);
    struct ofpi_place sum = number ? ofpi_place_of_temp(0) : ofpi_place_of_out(0);
    uint64_t length = ofpi_plan_count_bytes(plan);
    bool is_first = round == 0;

    if (round >= ofpi_doublings_count(plan->size) || (number && (number & (distance - 1)))) {
        if (round == 0 && number == 0)
            ofpi_round_add_copy(result, ofpi_place_of_out(0), ofpi_place_of_in(0), length); /* the only member */
        return round == 0 && number == 0;
    }
    if (number & distance)
        ofpi_round_add_reduced_send(result, ofpi_rank_find_in_tree(plan, number - distance),
                                    is_first ? ofpi_place_of_in(0) : sum, length);
    else if (number + distance < plan->size)
        ofpi_round_add_reduction(result, ofpi_rank_find_in_tree(plan, number + distance), false, sum,
                                 is_first ? ofpi_place_of_in(0) : sum, length);
    else if (is_first)
        ofpi_round_add_copy(result, sum, ofpi_place_of_in(0), length);
    return true;
}

/* First each member reduces its part of all vectors; then the root gathers the parts. */
static bool build_scattered_reduce(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t size = plan->size, rank = plan->rank;
    uint64_t mine = ofpi_part_compute_offset(plan, rank, size), length = ofpi_part_compute_length(plan, rank, size);
    struct ofpi_place sum = rank == plan->root ? ofpi_place_of_out(mine) : ofpi_place_of_temp(0);

    if (round < size - 1) {
        uint32_t to = ofpi_rank_find_behind(plan, round + 1), from = ofpi_rank_find_before(plan, round + 1);

        ofpi_round_add_reduction(result, from, from < rank, sum, round ? sum : ofpi_place_of_in(mine), length);
        ofpi_round_add_reduced_send(result, to, ofpi_place_of_in(ofpi_part_compute_offset(plan, to, size)),
                                    ofpi_part_compute_length(plan, to, size));
        return true;
    }
    round -= size - 1;
    if (rank != plan->root) {
        if (round == 0)
            ofpi_round_add_send(result, plan->root, sum, length);
        return round == 0;
    }
    for (uint64_t k = round * OFPI_LINEAR_WINDOW; k < (round + 1) * OFPI_LINEAR_WINDOW && k < size; k++)
        if (k != rank)
            ofpi_round_add_receive(result, (uint32_t)k,
                                   ofpi_place_of_out(ofpi_part_compute_offset(plan, (uint32_t)k, size)),
                                   ofpi_part_compute_length(plan, (uint32_t)k, size));
    return round * OFPI_LINEAR_WINDOW < size;
}

bool ofpi_reduce_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    return plan->algorithm == OFPI_BINOMIAL || plan->size == 1 ? build_binomial_reduce(plan, round, result)
                                                               : build_scattered_reduce(plan, round, result);
}

/* ----------------------------------------------------------------------------------------------- gather and scatter */

/* Copy between all blocks by rank and the same blocks by number in the tree, which begin with the root's. */
static void add_rotation(const struct ofpi_plan *plan, struct ofpi_round *result)
{
    uint64_t block = ofpi_plan_count_bytes(plan), behind = (plan->size - plan->root) * block,
             before = plan->root * block;

    if (plan->kind == OFP_COLLECTIVE_GATHER) {
        ofpi_round_add_copy(result, ofpi_place_of_out(before), ofpi_place_of_temp(0), behind);
        ofpi_round_add_copy(result, ofpi_place_of_out(0), ofpi_place_of_temp(behind), before);
    } else {
        ofpi_round_add_copy(result, ofpi_place_of_temp(0), ofpi_place_of_in(before), behind);
        ofpi_round_add_copy(result, ofpi_place_of_temp(behind), ofpi_place_of_in(0), before);
    }
}

static bool build_binomial_gather(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t number = ofpi_plan_find_number(plan), size = plan->size;
    uint64_t block = ofpi_plan_count_bytes(plan);

    if (round > 1)
        return false;
    if (round == 1 && number) {
        ofpi_round_add_send(result, ofpi_rank_find_in_tree(plan, find_parent(number)), ofpi_place_of_temp(0),
                            count_subtree(number, size) * block);
    } else if (round == 1) {
        add_rotation(plan, result);
    } else {
        for (uint32_t child = find_first_child(number, size); child; child >>= 1)
            ofpi_round_add_receive(result, ofpi_rank_find_in_tree(plan, number + child),
                                   ofpi_place_of_temp(child * block), count_subtree(number + child, size) * block);
        ofpi_round_add_copy(result, ofpi_place_of_temp(0), ofpi_place_of_in(0), block);
    }
    return true;
}

static bool build_binomial_scatter(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t number = ofpi_plan_find_number(plan), size = plan->size;
    uint64_t block = ofpi_plan_count_bytes(plan);

    if (round > 1)
        return false;
    if (round == 0 && number) {
        ofpi_round_add_receive(result, ofpi_rank_find_in_tree(plan, find_parent(number)), ofpi_place_of_temp(0),
                               count_subtree(number, size) * block);
    } else if (round == 0) {
        add_rotation(plan, result);
    } else {
        for (uint32_t child = find_first_child(number, size); child; child >>= 1)
            ofpi_round_add_send(result, ofpi_rank_find_in_tree(plan, number + child), ofpi_place_of_temp(child * block),
                                count_subtree(number + child, size) * block);
        ofpi_round_add_copy(result, ofpi_place_of_out(0), ofpi_place_of_temp(0), block);
    }
    return true;
}

static uint64_t get_own_length(const struct ofpi_plan *plan)
{
    return plan->is_vector ? plan->own : ofpi_plan_count_bytes(plan);
}

static bool build_linear_gather(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    if (plan->rank != plan->root) {
        if (round == 0)
            ofpi_round_add_send(result, plan->root, ofpi_place_of_in(0), get_own_length(plan));
        return round == 0;
    }
    for (uint64_t k = round * OFPI_LINEAR_WINDOW; k < (round + 1) * OFPI_LINEAR_WINDOW && k < plan->size; k++) {
        uint32_t rank = (uint32_t)k;

        if (rank != plan->root)
            ofpi_round_add_receive(result, rank, ofpi_place_of_out(ofpi_target_compute_offset(plan, rank)),
                                   ofpi_target_compute_length(plan, rank));
    }
    if (round == 0)
        ofpi_round_add_own_copy(result, ofpi_place_of_out(ofpi_target_compute_offset(plan, plan->rank)),
                                ofpi_place_of_in(0), ofpi_target_compute_length(plan, plan->rank));
    return round * OFPI_LINEAR_WINDOW < plan->size;
}

static bool build_linear_scatter(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    if (plan->rank != plan->root) {
        if (round == 0)
            ofpi_round_add_receive(result, plan->root, ofpi_place_of_out(0), get_own_length(plan));
        return round == 0;
    }
    for (uint64_t k = round * OFPI_LINEAR_WINDOW; k < (round + 1) * OFPI_LINEAR_WINDOW && k < plan->size; k++) {
        uint32_t rank = (uint32_t)k;

        if (rank != plan->root)
            ofpi_round_add_send(result, rank, ofpi_place_of_in(ofpi_source_compute_offset(plan, rank)),
                                ofpi_source_compute_length(plan, rank));
    }
    if (round == 0)
        ofpi_round_add_own_copy(result, ofpi_place_of_out(0),
                                ofpi_place_of_in(ofpi_source_compute_offset(plan, plan->rank)),
                                ofpi_source_compute_length(plan, plan->rank));
    return round * OFPI_LINEAR_WINDOW < plan->size;
}

bool ofpi_gather_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    return plan->algorithm == OFPI_BINOMIAL ? build_binomial_gather(plan, round, result)
                                            : build_linear_gather(plan, round, result);
}

bool ofpi_scatter_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    return plan->algorithm == OFPI_BINOMIAL ? build_binomial_scatter(plan, round, result)
                                            : build_linear_scatter(plan, round, result);
}
