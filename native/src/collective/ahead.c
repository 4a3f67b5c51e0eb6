/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/ahead.h"

#include <errno.h>

#include "collective/control_message.h"

#define QUESTION_DISTANCE (OFPI_AHEAD_MAX / 2)

static uint64_t count_started(const struct ofp_group *group, uint32_t rank)
{
    uint64_t started = group->members[rank].started;

    return started > group->started ? started : group->started;
}

/* Request an answer as soon as the member is nearer than the distance at which it is asked again. */
static void send_question(const struct ofpi_collective *collective, uint32_t rank, struct ofpi_owner *owner)
{
    struct ofp_group *group = collective->group;
    struct ofpi_control control = {
        .kind = OFPI_CONTROL_WANT, .rank = group->rank, .sequence = collective->sequence - QUESTION_DISTANCE + 1};

    ofpi_control_send(group, rank, &control, owner);
}

int ofpi_ahead_request(struct ofpi_collective *collective, uint32_t rank)
{
    struct ofp_group *group = collective->group;
    struct ofpi_group_member *member = &group->members[rank];

    if (!member->is_asked) {
        member->is_asked = true;
        send_question(collective, rank, &group->control_send);
    }
    if (collective->sequence - count_started(group, rank) < OFPI_AHEAD_MAX)
        return 0;
    collective->is_held = true;
    collective->held_rank = rank;
    return -EINPROGRESS;
}

void ofpi_ahead_retry(const struct ofpi_collective *collective)
{
    send_question(collective, collective->held_rank, &collective->group->question_send);
}

/* Whether this member's result depends on all members. */
static bool is_result_of_all(const struct ofpi_collective *collective)
{
    const struct ofp_collective *call = &collective->call;

    switch (call->kind) {
    case OFP_COLLECTIVE_BARRIER:
        return true;
    case OFP_COLLECTIVE_REDUCE:
    case OFP_COLLECTIVE_GATHER:
        return call->root == collective->plan.rank && call->count && !call->flags;
    case OFP_COLLECTIVE_ALLREDUCE:
    case OFP_COLLECTIVE_ALLGATHER:
    case OFP_COLLECTIVE_ALLTOALL:
    case OFP_COLLECTIVE_REDUCE_SCATTER:
        return call->count && !call->flags;
    default:
        return false;
    }
}

void ofpi_ahead_ended(const struct ofpi_collective *collective)
{
    struct ofp_group *group = collective->group;

    if (group->started <= collective->sequence && is_result_of_all(collective))
        group->started = collective->sequence + 1;
}

/* ----------------------------------------------------------------------------------------------------------- answers */

static void send_answer(struct ofp_group *group, uint32_t rank)
{
    struct ofpi_control control = {.kind = OFPI_CONTROL_STARTED, .rank = group->rank, .sequence = group->sequence};

    group->members[rank].is_wanted = false;
    ofpi_control_send(group, rank, &control, &group->control_send);
}

void ofpi_ahead_want_received(struct ofp_group *group, uint32_t rank, uint64_t count)
{
    struct ofpi_group_member *member = &group->members[rank];

    if (count <= group->sequence) {
        send_answer(group, rank);
        return;
    }
    member->is_wanted = true;
    member->wanted = (uint32_t)count;
    if (count < group->next_wanted)
        group->next_wanted = count;
}

void ofpi_ahead_serve(struct ofp_group *group)
{
    uint64_t next = UINT64_MAX;

    if (__builtin_expect(group->sequence < group->next_wanted, 1))
        return;
    for (uint32_t rank = 0; rank < group->size; rank++) {
        const struct ofpi_group_member *member = &group->members[rank];
        /* Nobody is 2^31 collectives ahead. */
        int32_t missing = (int32_t)(member->wanted - (uint32_t)group->sequence);

        if (!member->is_wanted)
            continue;
        if (missing <= 0)
            send_answer(group, rank);
        else if (group->sequence + (uint32_t)missing < next)
            next = group->sequence + (uint32_t)missing;
    }
    group->next_wanted = next;
}

void ofpi_ahead_started_received(struct ofp_group *group, uint32_t rank, uint64_t count)
{
    struct ofpi_group_member *member = &group->members[rank];
    struct ofp_list *node, *following;

    member->is_asked = false;
    if (count > member->started)
        member->started = count;
    OFP_LIST_EACH(node, following, &group->running) {
        struct ofpi_collective *collective = OFP_CONTAINER_OF(node, struct ofpi_collective, node);

        if (collective->is_held)
            ofpi_collective_schedule(collective);
    }
}
