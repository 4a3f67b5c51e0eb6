/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives without a root and without a reduction: barrier, allgather and alltoall. */
#include "schedule/exchange.h"

bool ofpi_barrier_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t distance = 1u << (round & 31);

    if (round >= ofpi_doublings_count(plan->size))
        return false;
    ofpi_round_add_step(result,
                        (struct ofpi_step){.kind = OFPI_STEP_RECEIVE, .rank = ofpi_rank_find_before(plan, distance)});
    ofpi_round_add_step(result,
                        (struct ofpi_step){.kind = OFPI_STEP_SEND, .rank = ofpi_rank_find_behind(plan, distance)});
    return true;
}

/* -------------------------------------------------------------------------------------------------------- allgather */

/* TEMP holds a member's blocks from its own on. In round k the member 2^k behind sends as many again. */
static bool build_bruck_allgather(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t size = plan->size, rank = plan->rank, rounds = ofpi_doublings_count(size);
    uint64_t block = ofpi_plan_count_bytes(plan);

    if (round == 0) {
        ofpi_round_add_copy(result, ofpi_place_of_temp(0), ofpi_place_of_in(0), block);
    } else if (round <= rounds) {
        uint32_t distance = 1u << (round - 1);
        uint64_t length = block * (distance < size - distance ? distance : size - distance);

        ofpi_round_add_receive(result, ofpi_rank_find_behind(plan, distance), ofpi_place_of_temp(distance * block),
                               length);
        ofpi_round_add_send(result, ofpi_rank_find_before(plan, distance), ofpi_place_of_temp(0), length);
    } else if (round == rounds + 1) {
        ofpi_round_add_copy(result, ofpi_place_of_out(rank * block), ofpi_place_of_temp(0), (size - rank) * block);
        ofpi_round_add_copy(result, ofpi_place_of_out(0), ofpi_place_of_temp((size - rank) * block), rank * block);
    }
    return round <= rounds + 1;
}

bool ofpi_allgather_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t rank = plan->rank, sent, received;

    if (plan->algorithm == OFPI_BRUCK)
        return build_bruck_allgather(plan, round, result);
    /* The only member has nothing to exchange. */
    if (round > 0 && round >= plan->size - 1)
        return false;
    if (round == 0)
        ofpi_round_add_own_copy(result, ofpi_place_of_out(ofpi_target_compute_offset(plan, rank)), ofpi_place_of_in(0),
                                ofpi_target_compute_length(plan, rank));
    if (plan->size == 1)
        return true;
    sent = ofpi_rank_find_before(plan, round);
    received = ofpi_rank_find_before(plan, round + 1);
    ofpi_round_add_receive(result, ofpi_rank_find_before(plan, 1),
                           ofpi_place_of_out(ofpi_target_compute_offset(plan, received)),
                           ofpi_target_compute_length(plan, received));
    ofpi_round_add_send(result, ofpi_rank_find_behind(plan, 1),
                        round ? ofpi_place_of_out(ofpi_target_compute_offset(plan, sent)) : ofpi_place_of_in(0),
                        ofpi_target_compute_length(plan, sent));
    return true;
}

/* --------------------------------------------------------------------------------------------------------- alltoall */

/*
 * Members whose ranks have the sum k are partners of each other for that k. All go through the sums in one order, so a
 * member may take fewer partners at a time than others: in place it takes one, whose block arrives in TEMP.
 */
bool ofpi_alltoall_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint64_t window = plan->in_place ? 1 : OFPI_PAIRS_WINDOW, end = (round + 1) * window;

    if (round * window >= plan->size)
        return false;
    for (uint64_t sum = round * window; sum < end && sum < plan->size; sum++) {
        uint32_t partner = (uint32_t)((sum + plan->size - plan->rank) % plan->size);
        struct ofpi_place from = ofpi_place_of_in(ofpi_source_compute_offset(plan, partner));
        struct ofpi_place to = ofpi_place_of_out(ofpi_target_compute_offset(plan, partner));
        uint64_t length = ofpi_target_compute_length(plan, partner);

        if (partner == plan->rank) {
            ofpi_round_add_own_copy(result, to, from, length);
            continue;
        }
        ofpi_round_add_receive(result, partner, plan->in_place ? ofpi_place_of_temp(0) : to, length);
        ofpi_round_add_send(result, partner, from, ofpi_source_compute_length(plan, partner));
        if (plan->in_place)
            ofpi_round_add_copy(result, to, ofpi_place_of_temp(0), length);
    }
    return true;
}
