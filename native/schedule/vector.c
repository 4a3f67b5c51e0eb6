/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions whose results every member gets: allreduce, reduce_scatter, and the scans. */
#include "schedule/vector.h"

/* -------------------------------------------------------------------------------------------------------- allreduce
 * Doubling and halving need a power of two. Of size = power + extra members the first 2 * extra are pairs: the even one
 * adds its vector to the odd one's, which takes part for both and returns the result.
 */

struct fold {
    uint32_t power, extra;
    uint32_t number; /* of this member among the `power` that take part */
    bool is_out;     /* this member's pair takes part in its place */
    bool is_pair;
};

static struct fold compute_fold(const struct ofpi_plan *plan)
{
    uint32_t power = 1u << ofpi_power_find_exponent(plan->size), extra = plan->size - power, rank = plan->rank;
    bool is_pair = rank < 2 * extra;

    return (struct fold){.power = power,
                         .extra = extra,
                         .number = is_pair ? rank / 2 : rank - extra,
                         .is_out = is_pair && rank % 2 == 0,
                         .is_pair = is_pair};
}

static uint32_t rank_of_number(const struct fold *fold, uint32_t number)
{
    return number < fold->extra ? 2 * number + 1 : number + fold->extra;
}

/* The first round; `to` is where the odd member computes. */
static void add_fold_in(const struct ofpi_plan *plan, const struct fold *fold, struct ofpi_place to,
                        struct ofpi_round *result)
{
    uint64_t length = ofpi_plan_count_bytes(plan);

    if (fold->is_out)
        ofpi_round_add_reduced_send(result, plan->rank + 1, ofpi_place_of_in(0), length);
    else if (fold->is_pair)
        ofpi_round_add_reduction(result, plan->rank - 1, true, to, ofpi_place_of_in(0), length);
}

/* The last round; `from` is where the odd member has computed. */
static void add_fold_out(const struct ofpi_plan *plan, const struct fold *fold, struct ofpi_place from,
                         struct ofpi_round *result)
{
    uint64_t length = ofpi_plan_count_bytes(plan);

    if (fold->is_out)
        ofpi_round_add_receive(result, plan->rank + 1, ofpi_place_of_out(0), length);
    else if (fold->is_pair)
        ofpi_round_add_send(result, plan->rank - 1, from, length);
    if (!fold->is_out && from.buffer != OFPI_OUT)
        ofpi_round_add_copy(result, ofpi_place_of_out(0), from, length);
}

static bool build_doubling_allreduce(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    struct fold fold = compute_fold(plan);
    uint32_t rounds = ofpi_power_find_exponent(plan->size);
    uint32_t results = fold.is_pair && !fold.is_out; /* that a pair has computed before the first exchange */

    round += !fold.extra; /* without pairs the exchanges come first */
    if (round == 0)
        add_fold_in(plan, &fold, ofpi_result_find_place(plan, 0), result);
    else if (round == rounds + 1)
        add_fold_out(plan, &fold, ofpi_result_find_before(plan, results + rounds), result);
    else if (round <= rounds && !fold.is_out) {
        uint32_t partner = rank_of_number(&fold, fold.number ^ 1u << (round - 1));
        uint32_t number = results + (uint32_t)round - 1;
        struct ofpi_place before = ofpi_result_find_before(plan, number);

        ofpi_round_add_reduction(result, partner, partner < plan->rank, ofpi_result_find_place(plan, number), before,
                                 ofpi_plan_count_bytes(plan));
        ofpi_round_add_reduced_send(result, partner, before, ofpi_plan_count_bytes(plan));
    }
    return round <= rounds || result->count;
}

/* The parts that a member still has after `rounds` halvings: from `*first` on, so many. */
static uint32_t find_halved_parts(const struct fold *fold, uint32_t rounds, uint32_t *first)
{
    uint32_t parts = fold->power >> rounds;

    *first = fold->number & ~(parts - 1);
    return parts;
}

static uint64_t count_part_bytes(const struct ofpi_plan *plan, uint32_t first, uint32_t parts, uint32_t power)
{
    return ofpi_part_compute_offset(plan, first + parts, power) - ofpi_part_compute_offset(plan, first, power);
}

/* Halve: exchange the halves of what both have. Then double: exchange what each has finished. */
static void add_halving(const struct ofpi_plan *plan, const struct fold *fold, uint32_t step, struct ofpi_round *result)
{
    uint32_t rounds = ofpi_power_find_exponent(plan->size), first, parts;
    bool is_doubling = step >= rounds;
    uint32_t depth = is_doubling ? 2 * rounds - 1 - step : step;
    uint32_t half = fold->power >> (depth + 1), partner = rank_of_number(fold, fold->number ^ half);
    uint32_t kept = fold->number & ~(half - 1), other;
    struct ofpi_place from = step || fold->is_pair ? ofpi_place_of_out(0) : ofpi_place_of_in(0);
    uint64_t here, there;

    parts = find_halved_parts(fold, depth, &first);
    other = first + parts - half - (kept - first);
    here = ofpi_part_compute_offset(plan, kept, fold->power);
    there = ofpi_part_compute_offset(plan, other, fold->power);
    if (is_doubling) {
        ofpi_round_add_receive(result, partner, ofpi_place_of_out(there),
                               count_part_bytes(plan, other, half, fold->power));
        ofpi_round_add_send(result, partner, ofpi_place_of_out(here), count_part_bytes(plan, kept, half, fold->power));
        return;
    }
    from.offset = here;
    ofpi_round_add_reduction(result, partner, partner < plan->rank, ofpi_place_of_out(here), from,
                             count_part_bytes(plan, kept, half, fold->power));
    from.offset = there;
    ofpi_round_add_reduced_send(result, partner, from, count_part_bytes(plan, other, half, fold->power));
}

static bool build_halving_allreduce(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    struct fold fold = compute_fold(plan);
    uint32_t rounds = ofpi_power_find_exponent(plan->size);

    round += !fold.extra; /* as above */
    if (round == 0)
        add_fold_in(plan, &fold, ofpi_place_of_out(0), result);
    else if (round == 2 * rounds + 1)
        add_fold_out(plan, &fold, ofpi_place_of_out(0), result);
    else if (round <= 2 * rounds && !fold.is_out)
        add_halving(plan, &fold, (uint32_t)round - 1, result);
    return round <= 2 * rounds || result->count;
}

/* Around the ring once, adding to each part, then once more to distribute it. */
static bool build_ring_allreduce(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t size = plan->size, behind = ofpi_rank_find_behind(plan, 1), before = ofpi_rank_find_before(plan, 1);
    bool is_reducing = round < size - 1;
    uint64_t step = is_reducing ? round : round - (size - 1);
    uint32_t sent = ofpi_rank_find_before(plan, is_reducing ? step : step + size - 1);
    uint32_t received = ofpi_rank_find_before(plan, is_reducing ? step + 1 : step);
    uint64_t in = ofpi_part_compute_offset(plan, received, size), out = ofpi_part_compute_offset(plan, sent, size);

    if (round >= 2 * ((uint64_t)size - 1))
        return false;
    if (is_reducing) {
        ofpi_round_add_reduction(result, before, before < plan->rank, ofpi_place_of_out(in), ofpi_place_of_in(in),
                                 ofpi_part_compute_length(plan, received, size));
        ofpi_round_add_reduced_send(result, behind, step ? ofpi_place_of_out(out) : ofpi_place_of_in(out),
                                    ofpi_part_compute_length(plan, sent, size));
    } else {
        ofpi_round_add_receive(result, before, ofpi_place_of_out(in), ofpi_part_compute_length(plan, received, size));
        ofpi_round_add_send(result, behind, ofpi_place_of_out(out), ofpi_part_compute_length(plan, sent, size));
    }
    return true;
}

bool ofpi_allreduce_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    if (plan->size == 1) {
        if (round == 0)
            ofpi_round_add_copy(result, ofpi_place_of_out(0), ofpi_place_of_in(0), ofpi_plan_count_bytes(plan));
        return round == 0;
    }
    if (plan->algorithm == OFPI_DOUBLING)
        return build_doubling_allreduce(plan, round, result);
    return plan->algorithm == OFPI_HALVING ? build_halving_allreduce(plan, round, result)
                                           : build_ring_allreduce(plan, round, result);
}

/* --------------------------------------------------------------------------------------------------- reduce_scatter */

/* Members are a power of two, and all blocks have one length. TEMP is a vector; the last sum is written to OUT. */
static bool build_halving_reduce_scatter(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t half = plan->size >> (round + 1), partner = plan->rank ^ half, kept = plan->rank & ~(half - 1);
    uint64_t block = ofpi_plan_count_bytes(plan), here = kept * block, there = (partner & ~(half - 1)) * block;

    if (!half)
        return false;
    ofpi_round_add_reduction(result, partner, partner < plan->rank,
                             half == 1 ? ofpi_place_of_out(0) : ofpi_place_of_temp(here),
                             round ? ofpi_place_of_temp(here) : ofpi_place_of_in(here), half * block);
    ofpi_round_add_reduced_send(result, partner, round ? ofpi_place_of_temp(there) : ofpi_place_of_in(there),
                                half * block);
    return true;
}

bool ofpi_reduce_scatter_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t rank = plan->rank, to = ofpi_rank_find_behind(plan, round + 1),
             from = ofpi_rank_find_before(plan, round + 1);
    struct ofpi_place mine = ofpi_place_of_in(ofpi_source_compute_offset(plan, rank));
    uint64_t length = ofpi_source_compute_length(plan, rank);

    if (plan->size == 1) {
        if (round == 0)
            ofpi_round_add_copy(result, ofpi_place_of_out(0), mine, length);
        return round == 0;
    }
    if (plan->algorithm == OFPI_HALVING)
        return build_halving_reduce_scatter(plan, round, result);
    if (round >= plan->size - 1)
        return false;
    ofpi_round_add_reduction(result, from, from < rank, ofpi_place_of_out(0), round ? ofpi_place_of_out(0) : mine,
                             length);
    ofpi_round_add_reduced_send(result, to, ofpi_place_of_in(ofpi_source_compute_offset(plan, to)),
                                ofpi_source_compute_length(plan, to));
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ scans */

/* In round k a member adds the sum of the 2^k members before the ones that its own sum has. */
static bool build_doubling_scan(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint32_t distance = 1u << (round & 31), number = (uint32_t)round, rank = plan->rank, rounds;
    uint32_t results =
        rank ? ofpi_power_find_exponent(rank) + 1 : 0; /* that this member computes, one a round from the first on */
    uint64_t length = ofpi_plan_count_bytes(plan);

    rounds = ofpi_doublings_count(plan->size);
    if (round == rounds) {
        struct ofpi_place last = ofpi_result_find_before(plan, results);

        if (last.buffer != OFPI_OUT)
            ofpi_round_add_copy(result, ofpi_place_of_out(0), last, length);
    }
    if (round >= rounds)
        return round == rounds;
    number = number < results ? number : results;
    if (rank + distance < plan->size)
        ofpi_round_add_reduced_send(result, rank + distance, ofpi_result_find_before(plan, number), length);
    if (rank >= distance)
        ofpi_round_add_reduction(result, rank - distance, true, ofpi_result_find_place(plan, number),
                                 ofpi_result_find_before(plan, number), length);
    return true;
}

/* A piece of the sum arrives from the member before, while the previous one leaves to the next. */
static bool build_chain_scan(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint64_t length = ofpi_plan_count_bytes(plan);
    uint64_t pieces = (length + OFPI_PIPELINE_PIECE - 1) / OFPI_PIPELINE_PIECE;

    if (round > pieces)
        return false;
    for (uint64_t piece = round ? round - 1 : 0; piece <= round && piece < pieces; piece++) {
        uint64_t offset = piece * OFPI_PIPELINE_PIECE;
        uint64_t here = length - offset < OFPI_PIPELINE_PIECE ? length - offset : OFPI_PIPELINE_PIECE;

        if (piece < round && plan->rank + 1 < plan->size)
            ofpi_round_add_reduced_send(result, plan->rank + 1,
                                        plan->rank ? ofpi_place_of_out(offset) : ofpi_place_of_in(offset), here);
        if (piece == round && plan->rank)
            ofpi_round_add_reduction(result, plan->rank - 1, true, ofpi_place_of_out(offset), ofpi_place_of_in(offset),
                                     here);
        if (piece == round && !plan->rank)
            ofpi_round_add_copy(result, ofpi_place_of_out(offset), ofpi_place_of_in(offset), here);
    }
    return true;
}

bool ofpi_scan_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    return plan->algorithm == OFPI_DOUBLING ? build_doubling_scan(plan, round, result)
                                            : build_chain_scan(plan, round, result);
}

/*
 * Each member gets the vector of the one before; then all but the first compute a scan of these vectors, in OUT. OUT of
 * the first stays as it is. In place the vector arrives in TEMP, while the own one leaves.
 */
bool ofpi_exscan_build(const struct ofpi_plan *plan, uint64_t round, struct ofpi_round *result)
{
    uint64_t length = ofpi_plan_count_bytes(plan);
    struct ofpi_plan shifted = *plan;
    int first = result->count;
    bool is_more;

    if (round == 0) {
        struct ofpi_place to = plan->in_place ? ofpi_place_of_temp(0) : ofpi_place_of_out(0);

        if (plan->rank + 1 < plan->size)
            ofpi_round_add_send(result, plan->rank + 1, ofpi_place_of_in(0), length);
        if (plan->rank)
            ofpi_round_add_receive(result, plan->rank - 1, to, length);
        if (plan->rank && plan->in_place)
            ofpi_round_add_copy(result, ofpi_place_of_out(0), to, length);
        return true;
    }
    if (plan->rank == 0)
        return false;
    shifted.kind = OFP_COLLECTIVE_SCAN;
    shifted.rank = plan->rank - 1;
    shifted.size = plan->size - 1;
    shifted.in_place = true;
    is_more = ofpi_scan_build(&shifted, round - 1, result);
    for (int i = first; i < result->count; i++) {
        struct ofpi_step *step = &result->steps[i];

        step->rank++;
        if (step->from.buffer == OFPI_IN)
            step->from.buffer = OFPI_OUT;
    }
    return is_more;
}
