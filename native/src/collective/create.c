/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/create.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "atomic/reduce.h"
#include "base/check.h"
#include "collective/sized.h"
#include "collective/transfer.h"
#include "operation/resolve.h"

/* ------------------------------------------------------------------------------------------------------------- rules */

/* The buffers of each kind of collective. */
enum shape { NOTHING, VECTOR, BLOCK, BLOCKS };

static const struct {
    uint8_t source, target;              /* enum shape */
    bool source_at_root, target_at_root; /* only there */
    bool reduces, can_vary, can_be_sized;
} shapes[] = {
    [OFP_COLLECTIVE_BARRIER] = {NOTHING, NOTHING, false, false, false, false, false},
    [OFP_COLLECTIVE_BROADCAST] = {NOTHING, VECTOR, false, false, false, false, true},
    [OFP_COLLECTIVE_REDUCE] = {VECTOR, VECTOR, false, true, true, false, false},
    [OFP_COLLECTIVE_ALLREDUCE] = {VECTOR, VECTOR, false, false, true, false, false},
    [OFP_COLLECTIVE_GATHER] = {BLOCK, BLOCKS, false, true, false, true, true},
    [OFP_COLLECTIVE_SCATTER] = {BLOCKS, BLOCK, true, false, false, true, true},
    [OFP_COLLECTIVE_ALLGATHER] = {BLOCK, BLOCKS, false, false, false, true, true},
    [OFP_COLLECTIVE_ALLTOALL] = {BLOCKS, BLOCKS, false, false, false, true, true},
    [OFP_COLLECTIVE_REDUCE_SCATTER] = {BLOCKS, BLOCK, false, false, true, true, false},
    [OFP_COLLECTIVE_SCAN] = {VECTOR, VECTOR, false, false, true, false, false},
    [OFP_COLLECTIVE_EXSCAN] = {VECTOR, VECTOR, false, false, true, false, false},
};

static enum shape get_source_shape(const struct ofpi_plan *plan)
{
    return shapes[plan->kind].source_at_root && plan->rank != plan->root ? NOTHING : shapes[plan->kind].source;
}
static enum shape get_target_shape(const struct ofpi_plan *plan)
{
    return shapes[plan->kind].target_at_root && plan->rank != plan->root ? NOTHING : shapes[plan->kind].target;
}

static int check_call(const struct ofp_group *group, const struct ofp_collective *call)
{
    if (call->kind >= sizeof(shapes) / sizeof(shapes[0]) || call->root >= group->size ||
        call->flags & ~(uint64_t)OFP_COLLECTIVE_FLAGS)
        return -EINVAL;
    if (shapes[call->kind].reduces ? !ofpi_reduction_is_valid(call->atomic_op, call->datatype)
                                   : call->datatype != OFP_UINT8)
        return -EOPNOTSUPP;
    if (call->flags & OFP_COLLECTIVE_VECTOR && !shapes[call->kind].can_vary)
        return -EINVAL;
    if (call->flags & OFP_COLLECTIVE_SIZED && (!shapes[call->kind].can_be_sized || !call->result))
        return -EINVAL;
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- lengths */

/* Bytes before each block, from counts of elements; -EINVAL: they are more than memory has. */
static int convert_counts(const uint64_t *counts, uint32_t size, uint32_t element, uint64_t *offsets)
{
    offsets[0] = 0;
    for (uint32_t i = 0; i < size; i++) {
        uint64_t bytes;

        if (__builtin_mul_overflow(counts[i], (uint64_t)element, &bytes) ||
            __builtin_add_overflow(offsets[i], bytes, &offsets[i + 1]) || offsets[i + 1] > INT64_MAX)
            return -EINVAL;
    }
    return 0;
}

/* Copy the call's arrays into the plan as offsets. */
static int copy_counts(struct ofpi_collective *collective, const struct ofp_collective *call)
{
    struct ofpi_plan *plan = &collective->plan;
    bool has_sources = get_source_shape(plan) == BLOCKS && call->flags;
    bool has_targets = get_target_shape(plan) == BLOCKS && call->flags & OFP_COLLECTIVE_VECTOR;
    size_t count = (size_t)plan->size + 1;
    int result = 0;

    if ((has_sources && !call->source_counts) || (has_targets && !call->target_counts))
        return -EINVAL;
    if (!has_sources && !has_targets)
        return 0;
    collective->offsets = malloc(2 * count * sizeof(*collective->offsets));
    if (!collective->offsets)
        return -ENOMEM;
    if (has_sources) {
        plan->sources = collective->offsets;
        result = convert_counts(call->source_counts, plan->size, plan->element, collective->offsets);
    }
    if (!result && has_targets) {
        plan->targets = collective->offsets + count;
        result = convert_counts(call->target_counts, plan->size, plan->element, collective->offsets + count);
    }
    return result;
}

static uint64_t compute_buffer_length(const struct ofpi_plan *plan, enum shape shape, const uint64_t *offsets)
{
    uint64_t bytes = plan->count * plan->element;

    switch (shape) {
    case VECTOR:
        return bytes;
    case BLOCK:
        return plan->is_vector ? plan->own : bytes;
    case BLOCKS:
        return offsets ? offsets[plan->size] : bytes * plan->size;
    default:
        return 0;
    }
}

static int build_plan(struct ofpi_collective *collective, const struct ofp_collective *call)
{
    const struct ofp_group *group = collective->group;
    struct ofpi_plan *plan = &collective->plan;
    uint64_t bytes, all;
    int result;

    *plan = (struct ofpi_plan){.kind = (enum ofp_collective_kind)call->kind,
                               .size = group->size,
                               .rank = group->rank,
                               .root = call->root,
                               .element = (uint32_t)ofpi_reduction_get_size(call->datatype),
                               .is_vector = call->flags & OFP_COLLECTIVE_VECTOR,
                               .count = call->count};
    if (__builtin_mul_overflow(call->count, (uint64_t)plan->element, &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)plan->size, &all) || all > INT64_MAX)
        return -EINVAL;
    plan->own = bytes;
    result = copy_counts(collective, call);
    if (result)
        return result;
    /* A member that knows all lengths must name its own one as the others do. */
    if (plan->kind == OFP_COLLECTIVE_REDUCE_SCATTER && plan->sources)
        plan->own = plan->sources[plan->rank + 1] - plan->sources[plan->rank];
    else if (plan->targets && shapes[plan->kind].source == BLOCK &&
             plan->own != plan->targets[plan->rank + 1] - plan->targets[plan->rank])
        return -EINVAL;
    else if (plan->sources && shapes[plan->kind].target == BLOCK && plan->is_vector &&
             plan->own != plan->sources[plan->rank + 1] - plan->sources[plan->rank])
        return -EINVAL;
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ memory */

static int resolve_buffer(struct ofpi_collective *collective, uint32_t access, uint32_t region, uint64_t offset,
                          uint64_t length, struct ofpi_memory *memory)
{
    struct ofp_region *found;
    struct iovec iov;
    int result = ofpi_segment_resolve(collective->group->domain, access, region, offset, length, &iov, &found);

    *memory = (struct ofpi_memory){region, offset, result ? NULL : iov.iov_base};
    return result;
}

/* IN and OUT may be one memory, or a block's buffer the member's own block among all blocks. */
static int check_overlap(struct ofpi_plan *plan, const char *in, uint64_t in_length, const char *out,
                         uint64_t out_length)
{
    enum shape source = get_source_shape(plan), target = get_target_shape(plan);

    plan->in_place = false;
    if (!in_length || !out_length || in >= out + out_length || out >= in + in_length)
        return 0;
    if (source == target) {
        plan->in_place = in == out;
        return in == out ? 0 : -EINVAL;
    }
    if (source == BLOCK)
        out += plan->targets ? plan->targets[plan->rank] : plan->rank * in_length;
    else
        in += plan->sources ? plan->sources[plan->rank] : plan->rank * out_length;
    return in == out ? 0 : -EINVAL;
}

/* TEMP, and behind it the landings of pieces that are reduced. */
static int allocate_temporary(struct ofpi_collective *collective, uint64_t vector)
{
    uint64_t pieces = (vector + OFPI_REDUCED_PIECE - 1) / OFPI_REDUCED_PIECE;

    collective->temporary_size = (ofpi_plan_compute_temporary(&collective->plan) + 63) & ~UINT64_C(63);
    collective->landing_count = 0;
    if (shapes[collective->plan.kind].reduces && collective->plan.size > 1) {
        collective->landing_count = pieces < OFPI_REDUCED_PIECES ? (uint32_t)pieces : OFPI_REDUCED_PIECES;
        collective->landing_size = vector < OFPI_REDUCED_PIECE ? ((uint32_t)vector + 63) & ~63u : OFPI_REDUCED_PIECE;
    }
    collective->temporary =
        malloc(collective->temporary_size + (uint64_t)collective->landing_count * collective->landing_size + 1);
    if (!collective->temporary)
        return -ENOMEM;
    collective->buffers[OFPI_TEMP] =
        (struct ofpi_memory){OFP_REGION_PROCESS, (uint64_t)(uintptr_t)collective->temporary, collective->temporary};
    return 0;
}

int ofpi_collective_resolve(struct ofpi_collective *collective)
{
    const struct ofp_collective *call = &collective->call;
    struct ofpi_plan *plan = &collective->plan;
    bool is_sized = call->flags & OFP_COLLECTIVE_SIZED;
    uint64_t in = compute_buffer_length(plan, get_source_shape(plan), plan->sources), out = 0;
    int result;

    if (is_sized && plan->kind == OFP_COLLECTIVE_BROADCAST)
        in = plan->rank == plan->root ? plan->own : 0;
    else if (!is_sized)
        out = compute_buffer_length(plan, get_target_shape(plan), plan->targets);
    result = resolve_buffer(collective, OFP_ACCESS_SEND, call->source_region, call->source, in,
                            &collective->buffers[OFPI_IN]);
    if (!result)
        result = resolve_buffer(collective, OFP_ACCESS_RECV, call->target_region, call->target, out,
                                &collective->buffers[OFPI_OUT]);
    if (!result)
        result =
            check_overlap(plan, collective->buffers[OFPI_IN].address, in, collective->buffers[OFPI_OUT].address, out);
    if (!result && is_sized) {
        collective->source = collective->buffers[OFPI_IN];
        result = ofpi_sized_start(collective);
    }
    /* One that starts again has its plan and its memory: the same regions are at the same addresses. */
    if (result || collective->temporary)
        return result;
    ofpi_plan_choose(plan);
    return allocate_temporary(collective,
                              plan->kind == OFP_COLLECTIVE_REDUCE_SCATTER ? in : plan->count * plan->element);
}

/* --------------------------------------------------------------------------------------------------------- signature */

/* The signature is equal at all members of one collective. Its messages carry it as remote CQ data. */
static uint64_t compute_signature(const struct ofpi_collective *collective)
{
    const struct ofp_collective *call = &collective->call;
    bool knows_bytes = !call->flags;
    uint64_t bytes = knows_bytes ? collective->plan.count * collective->plan.element : 0;
    uint64_t check = (call->root * UINT64_C(31) + collective->plan.algorithm * UINT64_C(7) + call->flags) & 0x3ff;
    uint64_t op = shapes[call->kind].reduces ? call->atomic_op + 1u : 0;
    uint64_t signature = (uint64_t)call->kind << 60 | (op & 31) << 55 | (uint64_t)(call->datatype & 31) << 50 |
                         check << 40 | (bytes & 0xffffffffff);
    uint64_t size = collective->group->endpoint->info.cq_data_size;

    if (size >= sizeof(signature))
        return signature;
    return (signature * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - 8 * size);
}

int ofpi_collective_create(struct ofp_group *group, const struct ofp_collective *call, struct ofpi_collective **result)
{
    struct ofpi_collective *collective;
    int error = check_call(group, call);

    if (error)
        return error;
    collective = calloc(1, sizeof(*collective));
    if (!collective)
        return -ENOMEM;
    collective->group = group;
    ofp_fetch_add(&group->uses, 1);
    collective->call = *call;
    ofpi_transfers_init(collective);
    error = build_plan(collective, call);
    if (!error)
        error = ofpi_collective_resolve(collective);
    if (error) {
        ofpi_collective_free(collective);
        return error;
    }
    collective->signature = compute_signature(collective);
    *result = collective;
    return 0;
}

void ofpi_collective_free(struct ofpi_collective *collective)
{
    struct ofp_group *group = collective->group;

    free(collective->temporary);
    free(collective->offsets);
    free(collective->sizes);
    free(collective->operation);
    free(collective);
    ofpi_group_release(group);
}
