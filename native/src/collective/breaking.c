/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/breaking.h"

#include <errno.h>
#include <stdio.h>

#include "base/check.h"
#include "collective/collective.h"
#include "progress/wait.h"

void ofpi_group_fail(struct ofp_group *group, int error)
{
    struct ofp_list *node, *following;

    OFPI_CHECK(ofpi_domain_is_held(group->domain) && error > 0);
    if (group->error)
        return;
    group->error = group->state.error = error;
    /* A member that closes after its last collective leaves the others as they are. */
    group->is_broken = group->breaks = group->size > 1 && (error != ECANCELED || !ofp_list_empty(&group->running));
    if (group->breaks)
        ofpi_group_schedule(group);
    OFP_LIST_EACH(node, following, &group->running)
        ofpi_collective_fail(OFP_CONTAINER_OF(node, struct ofpi_collective, node), error, 0);
    if (group->waiting)
        ofpi_domain_wake(group->domain);
}

uint32_t ofpi_group_find_rank(const struct ofp_group *group, uint32_t peer)
{
    for (uint32_t rank = 0; rank < group->size; rank++)
        if (group->peers[rank] == peer)
            return rank;
    return OFP_PEER_ANY;
}

void ofpi_group_mark_lost(struct ofp_group *group, uint32_t rank)
{
    struct ofp_group_state *state = &group->state;

    for (uint32_t i = 0; i < state->lost_count; i++)
        if (state->lost[i] == rank)
            return;
    if (rank < group->size && state->lost_count < OFP_GROUP_LOST_MAX)
        state->lost[state->lost_count++] = rank;
}

void ofpi_group_mark_aborted(struct ofp_group *group, uint32_t rank, const char *reason)
{
    if (group->error)
        return;
    group->state.cause = OFP_GROUP_CAUSE_ABORT;
    group->state.rank = rank;
    snprintf(group->state.reason, sizeof(group->state.reason), "%s", reason);
}

void ofpi_group_mark_mismatch(struct ofp_group *group, uint32_t rank, uint64_t sequence, uint64_t signature)
{
    if (group->error)
        return;
    group->state.sequence = sequence;
    group->state.rank = rank;
    group->state.theirs = signature;
    group->state.mine = group->signatures[sequence % OFPI_SIGNATURES];
}

bool ofpi_error_is_loss(int error)
{
    switch (error) {
    case OFP_EPEERLOST:
    case OFP_EPEERLEFT:
    case OFP_EPEERDIED:
    case ECONNRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ENOTCONN:
    case EHOSTUNREACH:
    case EPIPE:
    case ESHUTDOWN:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

bool ofpi_group_has_news(const struct ofp_group *group)
{
    const struct ofpi_control *control = group->incoming;

    return group->incoming_length >= sizeof(*control) && control->kind == OFPI_CONTROL_BROKEN &&
           control->rank < group->size && control->error && control->error <= INT16_MAX;
}

void ofpi_group_report_loss(struct ofp_group *group, uint32_t peer, int error)
{
    /* This member has told why it breaks the group, and left. Its news is about to be handled and says more. */
    if (group->has_heard && ofpi_group_has_news(group))
        return;
    if (!group->error && ofpi_error_is_loss(error))
        ofpi_group_mark_lost(group, ofpi_group_find_rank(group, peer));
    ofpi_group_fail(group, error);
}

void ofpi_group_report_mismatch(struct ofp_group *group, uint32_t peer, uint64_t sequence, uint64_t signature)
{
    ofpi_group_mark_mismatch(group, ofpi_group_find_rank(group, peer), sequence, signature);
    ofpi_group_fail(group, OFP_EMISMATCH);
}
