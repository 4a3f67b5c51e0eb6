/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far a member is ahead of those that it sends to. A message or a result of a member proves how many collectives it
 * has started. Without such a proof the member is asked (WANT), once in half of OFPI_AHEAD_MAX collectives, and it
 * answers (STARTED) when it has started enough of them. The lock is held.
 */
#ifndef OFPI_GROUP_AHEAD_H
#define OFPI_GROUP_AHEAD_H

#include "collective/collective.h"

/* As ofpi_ahead_check, for a member whose progress is not known well enough. */
int ofpi_ahead_request(struct ofpi_collective *collective, uint32_t rank);
/* 0: the collective may send to the member. -EINPROGRESS: the collective becomes due when it may. */
static inline int ofpi_ahead_check(struct ofpi_collective *collective, uint32_t rank)
{
    const struct ofp_group *group = collective->group;
    uint64_t most = collective->sequence - OFPI_AHEAD_MAX / 2;

    if (__builtin_expect(collective->sequence < OFPI_AHEAD_MAX / 2 || group->started > most ||
                             group->members[rank].started > most,
                         1))
        return 0;
    return ofpi_ahead_request(collective, rank);
}
/* A message of a member's collective has come. */
static inline void ofpi_ahead_store(struct ofp_group *group, uint32_t rank, uint64_t sequence)
{
    if (group->members[rank].started <= sequence)
        group->members[rank].started = sequence + 1;
}
/* A collective has ended well. */
void ofpi_ahead_ended(const struct ofpi_collective *collective);
/* A collective has started: answer the members that wait for it. */
void ofpi_ahead_serve(struct ofp_group *group);
/* Request the answer again that a held collective waits for; the group breaks if the member is gone. */
void ofpi_ahead_retry(const struct ofpi_collective *collective);
/* WANT and STARTED. The rank is another member's. */
void ofpi_ahead_want_received(struct ofp_group *group, uint32_t rank, uint64_t count);
void ofpi_ahead_started_received(struct ofp_group *group, uint32_t rank, uint64_t count);

#endif
