/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of a broken group receives what others still send to its collectives, and drops it. A large message stays in
 * flight until it is received, and cannot be cancelled: without this its sender's collective would not end. It lasts
 * until the endpoint closes, since others may learn late that the group is broken. The lock is held. A transport that
 * matches receives itself may never end a receive that is too short, so there the message lands in a bounce buffer.
 */
#ifndef OFPI_GROUP_DRAIN_H
#define OFPI_GROUP_DRAIN_H

#include "collective/group.h"

/* If the group is broken, receive the next message. */
void ofpi_drain_post(struct ofp_group *group);
/* The endpoint has closed. This may free the group. */
void ofpi_drain_end(struct ofpi_endpoint *endpoint, struct ofp_group *group);

#endif
