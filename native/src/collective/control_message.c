/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/control_message.h"

#include "collective/breaking.h"
#include "collective/drain.h"
#include "collective/message.h"

static void complete_control_send(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                                  struct ofp_completion *completion)
{
    (void)endpoint;
    (void)op_flags;
    (void)completion; /* a member that is gone need not know */
    ofpi_group_release(OFP_CONTAINER_OF(owner, struct ofp_group, control_send));
}

/* A collective waits for this member. */
static void complete_question_send(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                                   struct ofp_completion *completion)
{
    struct ofp_group *group = OFP_CONTAINER_OF(owner, struct ofp_group, question_send);

    (void)endpoint;
    (void)op_flags;
    if (completion->error && !group->closed)
        ofpi_group_report_loss(group, completion->source, completion->error);
    ofpi_group_release(group);
}

int ofpi_control_post(struct ofp_group *group, uint32_t rank, const void *bytes, uint64_t length,
                      struct ofpi_owner *owner)
{
    struct ofpi_message message = {.code = OFP_INTERNAL_SEND,
                                   .rank = rank,
                                   .sequence = OFPI_CONTROL_SEQUENCE,
                                   .flags = OFP_INJECT,
                                   .context = group,
                                   .offset = (uint64_t)(uintptr_t)bytes,
                                   .length = length};
    int result;

    ofp_fetch_add(&group->uses, 1);
    result = ofpi_message_post(group, &message, owner);
    if (result)
        ofpi_group_release(group);
    return result;
}

/* Without memory a question is repeated; other members pass on that the group is broken. */
void ofpi_control_send(struct ofp_group *group, uint32_t rank, const struct ofpi_control *control,
                       struct ofpi_owner *owner)
{
    if (rank != group->rank)
        (void)ofpi_control_post(group, rank, control, sizeof(*control), owner);
}

void ofpi_control_init(struct ofp_group *group)
{
    group->control_send.finish = complete_control_send;
    group->question_send.finish = complete_question_send;
}

void ofpi_control_end(struct ofp_group *group)
{
    if (group->hears && group->endpoint)
        ofpi_messages_cancel(group, &group->control_receive);
    ofpi_turn_cancel(&group->due);
    ofpi_drain_post(group);
}
