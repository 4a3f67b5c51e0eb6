/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages about a group: sending them, and the end of their receives. The lock is held. */
#ifndef OFPI_GROUP_CONTROL_MESSAGE_H
#define OFPI_GROUP_CONTROL_MESSAGE_H

#include "collective/group.h"
#include "object/owner.h"

/* Set the functions that are called when messages have left. */
void ofpi_control_init(struct ofp_group *group);
/* Send a message about the group; it is copied. `owner` is group->control_send or group->question_send. */
void ofpi_control_send(struct ofp_group *group, uint32_t rank, const struct ofpi_control *control,
                       struct ofpi_owner *owner);
/* The same, of any bytes. 0, or a negative error: `owner` is not called. */
int ofpi_control_post(struct ofp_group *group, uint32_t rank, const void *bytes, uint64_t length,
                      struct ofpi_owner *owner);
/* The group is closed and nobody needs it any more: receive nothing. */
void ofpi_control_end(struct ofp_group *group);

#endif
