/* SPDX-License-Identifier: BSD-3-Clause */
/* Naming the members of a group. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agreement/agreement.h"
#include "collective/control.h"
#include "peer/uninserted.h"
#include "progress/progress.h"
#include "schedule/schedule.h"

static int check_members(uint32_t size, uint32_t rank, const uint32_t *numbers)
{
    if (!size || size > OFPI_RANKS_MAX || rank >= size)
        return -EINVAL;
    for (uint32_t i = 0; i < size; i++)
        if (numbers[i] >= OFP_GROUP_LIMIT)
            return -EINVAL;
    return 0;
}

/* Of the longest message about the group; a multiple of 8. */
static size_t compute_incoming_size(uint32_t size)
{
    size_t abort = sizeof(struct ofpi_control) + OFP_GROUP_REASON_MAX;
    size_t decision = sizeof(struct ofpi_agreement_message) + size * sizeof(uint32_t);

    return ((abort > decision ? abort : decision) + 7) & ~(size_t)7;
}

static void start_membership(struct ofp_group *group)
{
    /* A group lasts, so a member that called and was not inserted must not be forgotten. */
    for (uint32_t rank = 0; rank < group->size; rank++)
        ofpi_uninserted_acquire(group->endpoint, group->peers[rank]);
    ofpi_control_start(group);
}

int ofp_group_join(struct ofp_group *group, uint32_t size, uint32_t rank, const uint32_t *peers,
                   const uint32_t *numbers, uint32_t flags)
{
    size_t bytes = size * sizeof(*peers), members = size * sizeof(struct ofpi_group_member);
    size_t incoming = compute_incoming_size(size);
    int result = flags & ~(uint32_t)OFP_GROUP_ONE_HOST ? -EINVAL : check_members(size, rank, numbers);
    char *copy = result ? NULL : calloc(1, members + incoming + 3 * bytes);

    if (!result)
        result = copy ? ofpi_domain_enter(group->domain) : -ENOMEM;
    if (!result) {
        result = group->closed ? -ECANCELED : group->peers ? -EALREADY : 0;
        if (!result) {
            group->size = size;
            group->rank = rank;
            group->members = (struct ofpi_group_member *)(void *)copy;
            group->incoming = (struct ofpi_control *)(void *)(copy + members);
            group->incoming_size = incoming;
            group->is_on_one_host = flags & OFP_GROUP_ONE_HOST;
            group->peers = (uint32_t *)(void *)(copy + members + incoming);
            group->numbers = group->peers + size;
            group->incarnations = group->numbers + size;
            memcpy(group->peers, peers, bytes);
            memcpy(group->numbers, numbers, bytes);
            if (group->endpoint)
                start_membership(group);
        }
        ofpi_domain_leave(group->domain);
    }
    if (result)
        free(copy);
    return result;
}

int ofp_group_query(struct ofp_group *group, struct ofp_group_state *state)
{
    int result = ofpi_domain_enter(group->domain);

    if (result)
        return result;
    *state = group->state;
    ofpi_domain_leave(group->domain);
    return 0;
}
