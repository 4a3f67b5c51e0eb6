/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and bytes of each algorithm, by the table in docs/explanation/collectives.md. */
#ifndef SCHEDULE_FORMULAE_H
#define SCHEDULE_FORMULAE_H

#include "schedule/plan.h"

static inline uint32_t log_up(uint32_t size)
{
    uint32_t result = 0;

    while ((1u << result) < size)
        result++;
    return result;
}

static inline uint32_t power_below(uint32_t size)
{
    uint32_t result = 1;

    while (2 * result <= size)
        result *= 2;
    return result;
}

static inline uint64_t scan_messages(uint32_t size)
{
    uint64_t result = 0;

    for (uint32_t distance = 1; distance < size; distance *= 2)
        result += size - distance;
    return result;
}

/* Messages of a collective none of whose parts is empty. */
static inline uint64_t expect_messages(const struct ofpi_plan *plan)
{
    uint64_t n = plan->size, power = power_below(plan->size), extra = n - power, q = log_up((uint32_t)power);
    uint64_t pieces = (plan->count * plan->element + OFPI_PIPELINE_PIECE - 1) / OFPI_PIPELINE_PIECE;

    switch (plan->kind) {
    case OFP_COLLECTIVE_BARRIER:
        return n * log_up(plan->size);
    case OFP_COLLECTIVE_BROADCAST:
        return plan->algorithm == OFPI_BINOMIAL ? n - 1 : (n - 1) * pieces;
    case OFP_COLLECTIVE_REDUCE:
        return plan->algorithm == OFPI_BINOMIAL ? n - 1 : n * (n - 1) + n - 1;
    case OFP_COLLECTIVE_ALLREDUCE:
        if (plan->algorithm == OFPI_RING)
            return 2 * n * (n - 1);
        return (plan->algorithm == OFPI_DOUBLING ? power * q : 2 * power * q) + 2 * extra;
    case OFP_COLLECTIVE_GATHER:
    case OFP_COLLECTIVE_SCATTER:
        return n - 1;
    case OFP_COLLECTIVE_ALLGATHER:
        return plan->algorithm == OFPI_BRUCK ? n * log_up(plan->size) : n * (n - 1);
    case OFP_COLLECTIVE_ALLTOALL:
        return n * (n - 1);
    case OFP_COLLECTIVE_REDUCE_SCATTER:
        return plan->algorithm == OFPI_HALVING ? power * q : n * (n - 1);
    case OFP_COLLECTIVE_SCAN:
        return plan->algorithm == OFPI_DOUBLING ? scan_messages(plan->size) : (n - 1) * pieces;
    default:
        if (n == 1)
            return 0;
        return n - 1 + (plan->algorithm == OFPI_DOUBLING ? scan_messages(plan->size - 1) : (n - 2) * pieces);
    }
}

/* Bytes that all members of a binomial tree send to their parents: each block once for every level above its own. */
static inline uint64_t count_subtrees(uint32_t size)
{
    uint64_t result = 0;

    for (uint32_t number = 1; number < size; number++)
        result += (uint64_t)__builtin_popcount(number);
    return result;
}

/* Bytes that all members send together. */
static inline uint64_t expect_bytes(const struct ofpi_plan *plan)
{
    uint64_t n = plan->size, power = power_below(plan->size), extra = n - power, q = log_up((uint32_t)power);
    uint64_t bytes = plan->count * plan->element;

    switch (plan->kind) {
    case OFP_COLLECTIVE_BARRIER:
        return 0;
    case OFP_COLLECTIVE_REDUCE:
        return plan->algorithm == OFPI_BINOMIAL ? (n - 1) * bytes : (n - 1) * bytes + (n - 1) * bytes / n;
    case OFP_COLLECTIVE_ALLREDUCE:
        if (plan->algorithm == OFPI_RING)
            return 2 * bytes * (n - 1);
        return (plan->algorithm == OFPI_DOUBLING ? power * q * bytes : 2 * bytes * (power - 1)) + 2 * extra * bytes;
    case OFP_COLLECTIVE_GATHER:
    case OFP_COLLECTIVE_SCATTER:
        return plan->algorithm == OFPI_BINOMIAL ? bytes * count_subtrees(plan->size) : (n - 1) * bytes;
    case OFP_COLLECTIVE_ALLGATHER:
    case OFP_COLLECTIVE_ALLTOALL:
    case OFP_COLLECTIVE_REDUCE_SCATTER:
        return n * (n - 1) * bytes;
    default:
        return expect_messages(plan) * bytes /
               ((plan->algorithm == OFPI_PIPELINED_TREE || plan->algorithm == OFPI_CHAIN)
                    ? (bytes + OFPI_PIPELINE_PIECE - 1) / OFPI_PIPELINE_PIECE
                    : 1);
    }
}

#endif
