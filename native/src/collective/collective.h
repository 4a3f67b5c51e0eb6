/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective at this member. The domain's lock guards all members.
 *
 * Its request owns it, and frees it; one that was posted as an operation frees itself at its end. A running collective owns its transfers: each ends in a function of
 * transfer.c, which counts. When all of a round have ended the collective is due, and the next round is posted when the
 * current public call or round of progress ends. So any thread that makes progress advances it.
 */
#ifndef OFPI_COLLECTIVE_H
#define OFPI_COLLECTIVE_H

#include "collective/group.h"
#include "collective/turn.h"
#include "completion/request_slots.h"
#include "object/owner.h"
#include "schedule/schedule.h"

/* A vector that is reduced travels in pieces, which are reduced where they land: 4 at a time, of this many bytes. */
#define OFPI_REDUCED_PIECE 262144u
#define OFPI_REDUCED_PIECES 4u
/*
 * A block is copied in pieces of this many bytes. On an AMD EPYC (family 26) they take 0.85 to 0.94 of one long copy, for which
 * glibc does not use `rep movsb`: docs/reference/performance.md.
 */
#define OFPI_COPIED_PIECE 262144u

/* The memory behind a place of the schedule. */
struct ofpi_memory {
    uint32_t region;
    uint64_t offset; /* as in a record */
    char *address;
};

enum ofpi_landing_state { OFPI_LANDING_FREE, OFPI_LANDING_POSTED, OFPI_LANDING_FULL };

/* A piece that is received in order to be reduced. */
struct ofpi_landing {
    struct ofpi_owner owner;
    struct ofpi_collective *collective;
    enum ofpi_landing_state state;
    uint64_t offset; /* in the step */
};

struct ofpi_collective {
    struct ofpi_kept kept;
    struct ofp_group *group;         /* a use of it */
    struct ofp_request *request;     /* NULL: it has `operation` */
    struct ofp_operation *operation; /* owned: the record that it was posted by; NULL: it has `request` */
    struct ofp_list node;            /* in group->running while it runs */
    struct ofpi_turn due;            /* a message, or all of a round, have ended */
    struct ofp_collective call;      /* its arrays are `plan`'s; `source_counts` and `target_counts` are not used */
    struct ofpi_plan plan;
    struct ofpi_memory buffers[3]; /* by enum ofpi_buffer */
    struct ofpi_memory source;     /* OFP_COLLECTIVE_SIZED: IN of the data */
    char *temporary;               /* owned: TEMP, then the landings; NULL: not allocated */
    uint64_t temporary_size;       /* of TEMP */
    uint32_t landing_size, landing_count;
    uint64_t *offsets; /* owned: the arrays of `plan` */

    uint64_t sequence, signature; /* what tag and remote CQ data of its messages are made of */
    bool is_sizing;               /* OFP_COLLECTIVE_SIZED: lengths are exchanged, the data follow */
    bool is_in_turn;              /* transfers that end do not make it due */
    uint64_t turn_reduced;        /* bytes that were reduced in this turn */
    uint64_t *sizes;              /* owned; OFP_COLLECTIVE_SIZED: the own lengths, then those of others */

    /* The current round. */
    uint64_t round;
    uint32_t posted;                      /* steps that were looked at: first for receives, then for sends */
    uint32_t in_flight;                   /* transfers */
    uint64_t awaited;                     /* bytes that receives in flight have asked for, less those that came */
    uint64_t piece_posted, piece_reduced; /* bytes of the step that is reduced */
    uint64_t piece_sent;                  /* bytes posted of the step that its receiver reduces */
    uint64_t copied;                      /* bytes of the copy that is apart */
    uint32_t pieces_leaving;
    bool is_held; /* `held_rank` has to start earlier collectives before it is sent more */
    uint32_t held_rank;
    struct ofpi_owner receive, send; /* of all transfers but pieces */
    struct ofpi_owner piece_send;    /* of all pieces that leave */
    struct ofpi_landing landings[OFPI_REDUCED_PIECES];

    int32_t error, provider_error; /* why it fails; 0: it does not */
    uint32_t arrived_count;
    uint32_t arrived[OFPI_STEPS_MAX]; /* peers whose whole messages of this round have come */
};

/* Make the collective due: its next turn comes at the end of the current call. */
static inline void ofpi_collective_schedule(struct ofpi_collective *collective)
{
    if (!collective->is_in_turn)
        ofpi_turn_schedule(collective->group->domain, &collective->due);
}

/* Fail with a positive error, and have its transfers cancelled in its next turn. */
static inline void ofpi_collective_fail(struct ofpi_collective *collective, int error, int provider_error)
{
    if (collective->error)
        return;
    collective->error = error;
    collective->provider_error = provider_error;
    ofpi_collective_schedule(collective);
}

#endif
