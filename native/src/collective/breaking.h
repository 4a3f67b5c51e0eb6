/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a group breaks, and that it does. The lock is held; none of these posts. */
#ifndef OFPI_GROUP_BREAKING_H
#define OFPI_GROUP_BREAKING_H

#include "collective/group.h"

/*
 * Break the group: its collectives end with `error`, a positive code, and the other members are told. Does nothing if it
 * is broken already.
 */
void ofpi_group_fail(struct ofp_group *group, int error);
/* Whether an error of a transfer means that the member, or the connection to it, is gone. */
bool ofpi_error_is_loss(int error);
/* Whether the last control message that was received says why the group is broken, with contents that can be. */
bool ofpi_group_has_news(const struct ofp_group *group);
/* The rank of a peer, OFP_PEER_ANY: it is no member. */
uint32_t ofpi_group_find_rank(const struct ofp_group *group, uint32_t peer);
/* The reason of an abort by this member; it is cut. Does nothing if the group is broken. */
void ofpi_group_mark_aborted(struct ofp_group *group, uint32_t rank, const char *reason);
/* A transfer with this peer, an address vector index, has ended with an error. */
void ofpi_group_report_loss(struct ofp_group *group, uint32_t peer, int error);
/* A message of this peer has another signature than the collective it came for. */
void ofpi_group_report_mismatch(struct ofp_group *group, uint32_t peer, uint64_t sequence, uint64_t signature);
/* The same, of a member by rank; it may be OFP_PEER_ANY: not known. */
void ofpi_group_mark_lost(struct ofp_group *group, uint32_t rank);
void ofpi_group_mark_mismatch(struct ofp_group *group, uint32_t rank, uint64_t sequence, uint64_t signature);
/* Have control messages sent and handled at the end of the current call. */
static inline void ofpi_group_schedule(struct ofp_group *group) { ofpi_turn_schedule(group->domain, &group->due); }

#endif
