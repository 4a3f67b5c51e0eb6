/* SPDX-License-Identifier: BSD-3-Clause */
/* Which algorithm a collective uses, and how much memory. */
#include "schedule/schedule.h"

#include "schedule/exchange.h"
#include "schedule/steps.h"
#include "schedule/tree.h"
#include "schedule/vector.h"

#define KIB UINT64_C(1024)

/*
 * Up to these sizes the algorithm with the fewest rounds is used. Of broadcast, allgather and gather they are MPICH's
 * order of magnitude; the others are estimates. Bytes of the vector, or of all blocks together.
 */
#define BROADCAST_SHORT (12 * KIB)
#define REDUCE_SHORT (8 * KIB)
#define ALLREDUCE_SHORT (8 * KIB)
#define SCAN_SHORT (8 * KIB)
#define ALLGATHER_SHORT (80 * KIB)
/* TEMP is a whole vector. */
#define REDUCE_SCATTER_HALVED (512 * KIB)
/* Bytes of a part of the ring, and of a block in a binomial tree. */
#define RING_PART (64 * KIB)
#define TREE_BLOCK KIB

static bool is_power_of_two(uint32_t number) { return !(number & (number - 1)); }

static enum ofpi_algorithm choose_allreduce(const struct ofpi_plan *plan)
{
    uint64_t bytes = ofpi_plan_count_bytes(plan);

    if (bytes <= ALLREDUCE_SHORT || plan->count < plan->size)
        return OFPI_DOUBLING;
    return bytes / plan->size >= RING_PART ? OFPI_RING : OFPI_HALVING;
}

void ofpi_plan_choose(struct ofpi_plan *plan)
{
    uint64_t bytes = ofpi_plan_count_bytes(plan);
    bool is_tree = !plan->is_vector && bytes <= TREE_BLOCK;

    switch (plan->kind) {
    case OFP_COLLECTIVE_BARRIER:
        plan->algorithm = OFPI_DISSEMINATION;
        break;
    case OFP_COLLECTIVE_BROADCAST:
        plan->algorithm = bytes <= BROADCAST_SHORT || plan->size <= 2 ? OFPI_BINOMIAL : OFPI_PIPELINED_TREE;
        break;
    case OFP_COLLECTIVE_REDUCE:
        plan->algorithm = bytes <= REDUCE_SHORT || plan->count < plan->size ? OFPI_BINOMIAL : OFPI_SCATTERED_REDUCE;
        break;
    case OFP_COLLECTIVE_ALLREDUCE:
        plan->algorithm = choose_allreduce(plan);
        break;
    case OFP_COLLECTIVE_GATHER:
    case OFP_COLLECTIVE_SCATTER:
        plan->algorithm = is_tree ? OFPI_BINOMIAL : OFPI_LINEAR;
        break;
    case OFP_COLLECTIVE_ALLGATHER:
        plan->algorithm = !plan->is_vector && bytes * plan->size <= ALLGATHER_SHORT ? OFPI_BRUCK : OFPI_RING;
        break;
    case OFP_COLLECTIVE_ALLTOALL:
        plan->algorithm = OFPI_PAIRWISE;
        break;
    case OFP_COLLECTIVE_REDUCE_SCATTER:
        plan->algorithm = !plan->is_vector && is_power_of_two(plan->size) && bytes * plan->size <= REDUCE_SCATTER_HALVED
                              ? OFPI_HALVING
                              : OFPI_PAIRWISE;
        break;
    case OFP_COLLECTIVE_SCAN:
    case OFP_COLLECTIVE_EXSCAN:
        plan->algorithm = bytes <= SCAN_SHORT ? OFPI_DOUBLING : OFPI_CHAIN;
        break;
    }
}

static uint64_t find_longest_target(const struct ofpi_plan *plan)
{
    uint64_t longest = 0;

    for (uint32_t i = 0; i < plan->size; i++)
        if (ofpi_target_compute_length(plan, i) > longest)
            longest = ofpi_target_compute_length(plan, i);
    return longest;
}

uint64_t ofpi_plan_compute_temporary(const struct ofpi_plan *plan)
{
    uint64_t bytes = ofpi_plan_count_bytes(plan);

    switch (plan->kind) {
    case OFP_COLLECTIVE_REDUCE:
        if (plan->rank == plan->root)
            return 0;
        return plan->algorithm == OFPI_BINOMIAL ? bytes : ofpi_part_compute_length(plan, plan->rank, plan->size);
    case OFP_COLLECTIVE_ALLREDUCE:
        return plan->algorithm == OFPI_DOUBLING ? bytes : 0;
    case OFP_COLLECTIVE_GATHER:
    case OFP_COLLECTIVE_SCATTER:
        return plan->algorithm == OFPI_BINOMIAL ? bytes * plan->size : 0;
    case OFP_COLLECTIVE_ALLGATHER:
        return plan->algorithm == OFPI_BRUCK ? bytes * plan->size : 0;
    case OFP_COLLECTIVE_ALLTOALL:
        return plan->in_place ? find_longest_target(plan) : 0;
    case OFP_COLLECTIVE_REDUCE_SCATTER:
        return plan->algorithm == OFPI_HALVING ? bytes * plan->size : 0;
    case OFP_COLLECTIVE_SCAN:
        return plan->algorithm == OFPI_DOUBLING ? bytes : 0;
    case OFP_COLLECTIVE_EXSCAN:
        return plan->algorithm == OFPI_DOUBLING || plan->in_place ? bytes : 0;
    default:
        return 0;
    }
}

int ofpi_plan_build_round(const struct ofpi_plan *plan, uint64_t round, struct ofpi_step steps[OFPI_STEPS_MAX])
{
    static bool (*const builders[])(const struct ofpi_plan *, uint64_t, struct ofpi_round *) = {
        [OFP_COLLECTIVE_BARRIER] = ofpi_barrier_build,
        [OFP_COLLECTIVE_BROADCAST] = ofpi_broadcast_build,
        [OFP_COLLECTIVE_REDUCE] = ofpi_reduce_build,
        [OFP_COLLECTIVE_ALLREDUCE] = ofpi_allreduce_build,
        [OFP_COLLECTIVE_GATHER] = ofpi_gather_build,
        [OFP_COLLECTIVE_SCATTER] = ofpi_scatter_build,
        [OFP_COLLECTIVE_ALLGATHER] = ofpi_allgather_build,
        [OFP_COLLECTIVE_ALLTOALL] = ofpi_alltoall_build,
        [OFP_COLLECTIVE_REDUCE_SCATTER] = ofpi_reduce_scatter_build,
        [OFP_COLLECTIVE_SCAN] = ofpi_scan_build,
        [OFP_COLLECTIVE_EXSCAN] = ofpi_exscan_build,
    };
    struct ofpi_round result = {.steps = steps};

    OFP_CHECK(plan->size && plan->rank < plan->size && plan->root < plan->size);
    return builders[plan->kind](plan, round, &result) ? result.count : -1;
}
