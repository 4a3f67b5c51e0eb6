/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages about a group. ASK: a member that has waited for a second asks those that it waits for whether they have made
 * the same call. BROKEN: the group is broken, and why; who learns of it passes it on once. WANT, STARTED: ahead.h.
 * Messages of an agreement: group_agreement.h.
 */
#ifndef OFPI_GROUP_CONTROL_H
#define OFPI_GROUP_CONTROL_H

#include "collective/group.h"

/* The group has members: receive messages about it from now on. */
void ofpi_control_start(struct ofp_group *group);
/* The group closes; the others are told of collectives that it leaves, if it can send. */
void ofpi_control_stop(struct ofp_group *group, bool can_send);
/* A collective has started: begin to be patient. */
void ofpi_control_watch(struct ofp_group *group);

#endif
