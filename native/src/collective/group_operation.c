/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/group_operation.h"

#include <errno.h>
#include <stdlib.h>

#include "atomic/reduce.h"
#include "collective/advance.h"
#include "collective/create.h"
#include "peer/pending.h"

static const struct {
    uint8_t kind;
    bool reduces, has_root;
} collectives[] = {
    [OFP_BARRIER] = {OFP_COLLECTIVE_BARRIER, false, false},
    [OFP_BROADCAST] = {OFP_COLLECTIVE_BROADCAST, false, true},
    [OFP_ALLTOALL] = {OFP_COLLECTIVE_ALLTOALL, false, false},
    [OFP_ALLREDUCE] = {OFP_COLLECTIVE_ALLREDUCE, true, false},
    [OFP_ALLGATHER] = {OFP_COLLECTIVE_ALLGATHER, false, false},
    [OFP_REDUCE_SCATTER] = {OFP_COLLECTIVE_REDUCE_SCATTER, true, false},
    [OFP_REDUCE] = {OFP_COLLECTIVE_REDUCE, true, true},
    [OFP_SCATTER] = {OFP_COLLECTIVE_SCATTER, false, true},
    [OFP_GATHER] = {OFP_COLLECTIVE_GATHER, false, true},
};

static struct ofp_group *find_group(const struct ofpi_endpoint *endpoint, uint32_t number)
{
    const struct ofp_list *groups = &endpoint->domain->groups;

    for (struct ofp_list *node = groups->next; node != groups; node = node->next) {
        struct ofp_group *group = OFP_CONTAINER_OF(node, struct ofp_group, node);

        if (group->endpoint == endpoint && group->number == number && !group->closed)
            return group;
    }
    return NULL;
}

static int describe_call(const struct ofp_operation *op, struct ofp_collective *call)
{
    bool reduces = collectives[op->op].reduces;
    uint64_t element = reduces ? ofpi_reduction_get_size(op->datatype) : 1;
    uint64_t root = collectives[op->op].has_root ? op->tag : 0;

    if (op->segment_count || op->remote_segment_count)
        return -EOPNOTSUPP;
    if (root > UINT32_MAX)
        return -EINVAL;
    if (reduces && !ofpi_reduction_is_valid(op->atomic_op, op->datatype))
        return -EOPNOTSUPP;
    if (op->length % element)
        return -EINVAL;
    *call = (struct ofp_collective){
        .kind = collectives[op->op].kind,
        .root = (uint32_t)root,
        .atomic_op = op->atomic_op,
        .datatype = reduces ? op->datatype : OFP_UINT8,
        .count = op->length / element,
        .source = op->offset,
        .source_region = op->region,
        .target = op->op == OFP_BROADCAST ? op->offset : op->result_offset,
        .target_region = op->op == OFP_BROADCAST ? op->region : op->result_region,
    };
    return 0;
}

static int create_collective(struct ofpi_endpoint *endpoint, const struct ofp_operation *op,
                             struct ofpi_collective **collective)
{
    struct ofp_group *group = find_group(endpoint, op->peer);
    struct ofp_collective call;
    int result = group ? ofpi_group_check(group) : -ENOENT;

    if (!result)
        result = describe_call(op, &call);
    return result ? result : ofpi_collective_create(group, &call, collective);
}

int ofpi_group_operation_check(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    struct ofpi_collective *collective;
    int result = create_collective(endpoint, op, &collective);

    if (!result)
        ofpi_collective_free(collective);
    return result;
}

int ofpi_group_operation_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    struct ofpi_collective *collective;
    int result = create_collective(endpoint, op, &collective);

    if (result)
        return result;
    if (collective->group->running_count >= OFPI_COLLECTIVES_MAX)
        result = -EAGAIN;
    else if (!(collective->operation = malloc(sizeof(*op))) || !ofpi_reserve_acquire(&endpoint->domain->entries, 1))
        result = -ENOMEM;
    if (result) {
        ofpi_collective_free(collective);
        return result;
    }
    *collective->operation = *op;
    ofpi_collective_start(collective);
    return 0;
}

void ofpi_group_operation_end(struct ofpi_collective *collective, struct ofpi_endpoint *endpoint)
{
    struct ofp_operation op = *collective->operation;
    struct ofp_transfer transfer = {.op = &op, .length = op.length};
    int error = collective->error, provider_error = collective->provider_error;

    ofpi_collective_free(collective);
    ofpi_reserve_release(&endpoint->domain->entries, 1);
    ofpi_transfer_report(endpoint, &transfer, error, provider_error);
}
