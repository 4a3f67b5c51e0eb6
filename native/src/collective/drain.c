/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/drain.h"

#include <errno.h>

#include "collective/breaking.h"
#include "collective/message.h"
#include "peer/bounce.h"

/* Where the core matches there is no memory for the message, so the receive ends with OFP_ETRUNC. */
static void complete_drain_receive(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                                   struct ofp_completion *completion)
{
    struct ofp_group *group = OFP_CONTAINER_OF(owner, struct ofp_group, drain_receive);

    (void)endpoint;
    (void)op_flags;
    group->drains = false;
    /* ECANCELED: the endpoint closes. */
    if (completion->error != ECANCELED)
        ofpi_group_schedule(group);
}

/* False: there is no memory that the transport needs. */
static bool find_memory(struct ofp_group *group, struct ofpi_message *message)
{
    struct ofpi_endpoint *endpoint = group->endpoint;

    if (!endpoint->info.offloads_matching)
        return true;
    if (!group->drained)
        group->drained = ofpi_bounce_allocate(endpoint, endpoint->base.bounce_size);
    message->offset = (uint64_t)(uintptr_t)group->drained;
    message->length = endpoint->base.bounce_size;
    return group->drained != NULL;
}

void ofpi_drain_post(struct ofp_group *group)
{
    struct ofpi_message message = {.code = OFP_INTERNAL_RECV,
                                   .rank = OFP_PEER_ANY,
                                   .sequence = 0,
                                   .ignore = OFPI_ALL_SEQUENCES,
                                   .context = &group->drain_receive};

    if (!group->is_broken || group->drains || !group->endpoint || !find_memory(group, &message))
        return;
    group->drain_receive.finish = complete_drain_receive;
    if (!group->has_drained)
        ofp_fetch_add(&group->uses, 1);
    group->has_drained = group->drains = true;
    if (ofpi_message_post(group, &message, &group->drain_receive))
        group->drains = false;
}

void ofpi_drain_end(struct ofpi_endpoint *endpoint, struct ofp_group *group)
{
    if (group->drained)
        ofpi_bounce_free(endpoint, group->drained, endpoint->base.bounce_size);
    group->drained = NULL;
    if (!group->has_drained)
        return;
    group->has_drained = false;
    ofpi_turn_cancel(&group->due);
    ofpi_group_release(group);
}
