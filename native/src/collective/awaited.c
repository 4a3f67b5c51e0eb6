/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/awaited.h"

#include <stdio.h>

#include "base/log.h"

static const char *const kind_names[] = {
    [OFP_COLLECTIVE_BARRIER] = "barrier",
    [OFP_COLLECTIVE_BROADCAST] = "broadcast",
    [OFP_COLLECTIVE_REDUCE] = "reduce",
    [OFP_COLLECTIVE_ALLREDUCE] = "allreduce",
    [OFP_COLLECTIVE_GATHER] = "gather",
    [OFP_COLLECTIVE_SCATTER] = "scatter",
    [OFP_COLLECTIVE_ALLGATHER] = "allgather",
    [OFP_COLLECTIVE_ALLTOALL] = "alltoall",
    [OFP_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
    [OFP_COLLECTIVE_SCAN] = "scan",
    [OFP_COLLECTIVE_EXSCAN] = "exscan",
    [OFP_COLLECTIVE_AGREEMENT] = "agreement",
};

void ofpi_awaited_add(struct ofp_collective_state *state, uint32_t rank)
{
    uint32_t stored = state->awaited_count < OFP_COLLECTIVE_AWAITED_MAX ? state->awaited_count : 0;

    for (uint32_t i = 0; i < stored; i++)
        if (state->awaited[i] == rank)
            return;
    if (state->awaited_count < OFP_COLLECTIVE_AWAITED_MAX)
        state->awaited[state->awaited_count] = rank;
    state->awaited_count++;
}

/* Whether the message of this step has come; it is removed from `arrived`, since a round may have several of a peer. */
static bool remove_arrived(uint32_t *arrived, uint32_t count, uint32_t peer)
{
    for (uint32_t i = 0; i < count; i++) {
        if (arrived[i] != peer)
            continue;
        arrived[i] = OFP_PEER_ANY;
        return true;
    }
    return false;
}

static void add_senders(const struct ofpi_collective *collective, const struct ofpi_step *steps, int count,
                        struct ofp_collective_state *state)
{
    uint32_t arrived[OFPI_STEPS_MAX];

    for (uint32_t i = 0; i < collective->arrived_count; i++)
        arrived[i] = collective->arrived[i];
    for (int i = 0; i < count; i++) {
        uint32_t rank = steps[i].rank, peer = collective->group->peers[rank];
        bool is_awaited = steps[i].kind == OFPI_STEP_RECEIVE
                              ? !remove_arrived(arrived, collective->arrived_count, peer)
                              : steps[i].kind == OFPI_STEP_REDUCE && collective->piece_reduced < steps[i].length;

        if (is_awaited)
            ofpi_awaited_add(state, rank);
    }
}

void ofpi_collective_describe(const struct ofpi_collective *collective, struct ofp_collective_state *state)
{
    struct ofpi_step steps[OFPI_STEPS_MAX];
    int count = ofpi_plan_build_round(&collective->plan, collective->round, steps);

    *state = (struct ofp_collective_state){.sequence = collective->sequence, .kind = collective->call.kind};
    add_senders(collective, steps, count, state);
    if (collective->is_held)
        ofpi_awaited_add(state, collective->held_rank);
    /* All has come: the sends have not left. */
    for (int i = 0, waits = state->awaited_count != 0; !waits && i < count; i++)
        if (steps[i].kind == OFPI_STEP_SEND)
            ofpi_awaited_add(state, steps[i].rank);
}

void ofpi_awaited_warn(const struct ofp_group *group, const struct ofp_collective_state *state)
{
    char ranks[16 * OFP_COLLECTIVE_AWAITED_MAX] = "";
    size_t length = 0;

    for (uint32_t i = 0; i < state->awaited_count && i < OFP_COLLECTIVE_AWAITED_MAX; i++)
        length +=
            (size_t)snprintf(ranks + length, sizeof(ranks) - length, "%s%u", i ? ", " : "rank ", state->awaited[i]);
    if (state->awaited_count > OFP_COLLECTIVE_AWAITED_MAX)
        snprintf(ranks + length, sizeof(ranks) - length, " and others");
    ofpi_log_write(OFP_LOG_WARNING, "core", "group %u: call %llu (%s) of rank %u of %u waits for %s", group->number,
                   (unsigned long long)state->sequence, kind_names[state->kind], group->rank, group->size, ranks);
}
