/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a group, all of which are posted here. The lock is held. */
#ifndef OFPI_GROUP_MESSAGE_H
#define OFPI_GROUP_MESSAGE_H

#include "collective/group.h"
#include "object/owner.h"

/* In a tag, instead of the number of a collective: a message about the group. */
#define OFPI_CONTROL_SEQUENCE UINT64_C(0x80000000)

struct ofpi_message {
    uint16_t code; /* OFP_INTERNAL_SEND, OFP_INTERNAL_RECV */
    uint32_t rank; /* OFP_PEER_ANY: receive from any member */
    uint64_t sequence, data;
    uint64_t ignore;     /* of a receive: bits of the sequence that it does not compare */
    uint64_t flags;      /* besides those of all messages */
    const void *context; /* by which it is cancelled */
    uint32_t region;
    uint64_t offset, length;
};

/* All numbers of collectives: what a receive of any collective ignores. */
#define OFPI_ALL_SEQUENCES (OFPI_CONTROL_SEQUENCE - 1)

/* 0, -EAGAIN: the transmit queue is full; or another error. `owner` is called when it ends, which may be within the call. */
int ofpi_message_post(struct ofp_group *group, const struct ofpi_message *message, struct ofpi_owner *owner);
/* Cancel all messages of this context that can be cancelled. */
void ofpi_messages_cancel(struct ofp_group *group, const void *context);

#endif
