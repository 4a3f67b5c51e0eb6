/* SPDX-License-Identifier: BSD-3-Clause */
/* The agreements of a group: carries the messages of native/agreement. The lock is held. */
#ifndef OFPI_GROUP_AGREEMENT_H
#define OFPI_GROUP_AGREEMENT_H

#include "agreement/agreement.h"
#include "collective/group.h"
#include "completion/request_slots.h"
#include "object/owner.h"

/* A call of ofp_group_agree. It belongs to its request, and is freed with it. */
struct ofpi_agreement_call {
    struct ofpi_kept kept;
    struct ofp_group *group; /* a use of it */
    struct ofp_request *request;
    struct ofp_agreement_result *result;
};

struct ofpi_group_agreement {
    struct ofpi_agreement machine;
    struct ofp_group *group;
    struct ofpi_agreement_call *call; /* it runs; NULL: none does */
    struct ofpi_owner send;
    struct ofp_timer timer;
    bool retries;                            /* the timer has expired */
    bool has_gone;                           /* a member is_gone that the machine does not know to be */
    uint32_t periods;                        /* of the timer, since the last start or decision */
    struct ofpi_agreement_message *outgoing; /* behind this structure, with room for values */
};

/* Handle group->incoming, whatever it is; false: it is no message of an agreement. */
bool ofpi_group_agreement_receive(struct ofp_group *group);
/* Do what is due; this may free the group. */
void ofpi_group_agreement_run(struct ofp_group *group);
/* The group closes. True: it serves other members. */
bool ofpi_group_agreement_stop(struct ofp_group *group, bool can_send);
/* Serve no longer, if it does; this may free the group. */
void ofpi_group_agreement_end_service(struct ofp_group *group);
/* Whether other members may still need the last decision. */
bool ofpi_group_agreement_is_needed(const struct ofp_group *group);

#endif
