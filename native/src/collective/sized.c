/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/sized.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "collective/transfer.h"

static bool has_all_targets(const struct ofpi_plan *plan)
{
    return plan->kind == OFP_COLLECTIVE_ALLGATHER || plan->kind == OFP_COLLECTIVE_ALLTOALL ||
           (plan->kind == OFP_COLLECTIVE_GATHER && plan->rank == plan->root);
}

static bool has_all_sources(const struct ofpi_plan *plan)
{
    return plan->kind == OFP_COLLECTIVE_ALLTOALL || (plan->kind == OFP_COLLECTIVE_SCATTER && plan->rank == plan->root);
}

static void set_process_memory(struct ofpi_memory *memory, void *address)
{
    *memory = (struct ofpi_memory){OFP_REGION_PROCESS, (uint64_t)(uintptr_t)address, address};
}

/* `sizes`: lengths of the own blocks, one or `size` of them; behind them the lengths of the blocks that it will get. */
int ofpi_sized_start(struct ofpi_collective *collective)
{
    struct ofpi_plan *plan = &collective->plan;
    uint32_t size = plan->size, own = has_all_sources(plan) ? size : 1;
    uint64_t *sizes = calloc((size_t)size + own, sizeof(*sizes));

    if (!sizes)
        return -ENOMEM;
    collective->sizes = sizes;
    for (uint32_t i = 0; i < own; i++)
        sizes[i] = plan->sources ? plan->sources[i + 1] - plan->sources[i] : collective->call.count;
    if (plan->kind == OFP_COLLECTIVE_BROADCAST && plan->rank == plan->root)
        sizes[own] = sizes[0];
    plan->element = sizeof(*sizes);
    plan->count = 1;
    plan->is_vector = false;
    plan->sources = plan->targets = NULL;
    set_process_memory(&collective->buffers[OFPI_IN], sizes);
    set_process_memory(&collective->buffers[OFPI_OUT], sizes + own);
    collective->is_sizing = true;
    return 0;
}

/* Offsets of the blocks that this member gets. -EMSGSIZE: no memory is as large as these lengths of other members. */
static int compute_ends(const uint64_t *lengths, uint64_t count, uint64_t *offsets)
{
    offsets[0] = 0;
    for (uint64_t i = 0; i < count; i++)
        if (__builtin_add_overflow(offsets[i], lengths[i], &offsets[i + 1]) || offsets[i + 1] > INT64_MAX)
            return -EMSGSIZE;
    return 0;
}

/* The number of blocks that this member gets; 0: none. */
static uint32_t count_targets(const struct ofpi_plan *plan)
{
    if (has_all_targets(plan))
        return plan->size;
    /* The root of a broadcast has the data already. */
    return plan->kind == OFP_COLLECTIVE_BROADCAST ? plan->rank != plan->root : plan->kind != OFP_COLLECTIVE_GATHER;
}

static int allocate_result(struct ofpi_collective *collective, const uint64_t *lengths)
{
    struct ofp_collective_result *result = collective->call.result;
    uint64_t blocks = count_targets(&collective->plan);
    int error;

    result->ends = malloc((blocks + 1) * sizeof(*result->ends));
    if (!result->ends)
        return -ENOMEM;
    error = compute_ends(lengths, blocks, result->ends);
    if (error)
        return error;
    result->blocks = blocks;
    result->length = result->ends[blocks];
    result->memory = malloc(result->length + 1);
    return result->memory ? 0 : -ENOMEM;
}

int ofpi_sized_start_data(struct ofpi_collective *collective)
{
    struct ofpi_plan *plan = &collective->plan;
    uint32_t own = has_all_sources(plan) ? plan->size : 1;
    const uint64_t *lengths = collective->sizes + own;
    struct ofp_collective_result *result = collective->call.result;
    int error = allocate_result(collective, lengths);

    if (error)
        return error;
    plan->element = 1;
    plan->is_vector = true;
    plan->own = plan->kind == OFP_COLLECTIVE_SCATTER ? lengths[0] : collective->sizes[0];
    plan->sources = has_all_sources(plan) ? collective->offsets : NULL;
    plan->targets = has_all_targets(plan) ? result->ends : NULL;
    collective->buffers[OFPI_IN] = collective->source;
    set_process_memory(&collective->buffers[OFPI_OUT], result->memory);
    if (plan->kind == OFP_COLLECTIVE_BROADCAST) {
        plan->is_vector = false;
        plan->count = lengths[0];
        if (plan->rank == plan->root)
            collective->buffers[OFPI_OUT] = collective->source;
    }
    ofpi_plan_choose(plan);
    OFPI_CHECK(ofpi_plan_compute_temporary(plan) == 0);
    collective->is_sizing = false;
    collective->round = 0;
    ofpi_transfers_clear(collective);
    return 0;
}

void ofp_collective_result_free(struct ofp_collective_result *result)
{
    free(result->memory);
    free(result->ends);
    *result = (struct ofp_collective_result){0};
}
