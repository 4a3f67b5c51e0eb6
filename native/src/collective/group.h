/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of endpoints. The domain's lock guards all members, unless a comment says otherwise. */
#ifndef OFPI_GROUP_H
#define OFPI_GROUP_H

#include "object/endpoint.h"
#include "collective/turn.h"
#include "object/owner.h"
#include "ofipy/collective.h"

/* Collectives of a group that run at the same time at one member. */
#define OFPI_COLLECTIVES_MAX 64u

/* Collectives by which a member is at most ahead of one that it sends to: further sends wait. */
#define OFPI_AHEAD_MAX 64u

/* The last collectives whose signatures a member keeps, ended ones too. */
#define OFPI_SIGNATURES 128u

enum ofpi_control_kind {
    OFPI_CONTROL_ASK = 1,
    OFPI_CONTROL_BROKEN = 2,
    OFPI_CONTROL_WANT = 3,
    OFPI_CONTROL_STARTED = 4
};

/* A message about a group; its sender is told by its endpoint's peer. Little-endian hosts alone form a job. */
struct ofpi_control {
    uint32_t kind;      /* enum ofpi_control_kind */
    uint32_t error;     /* BROKEN */
    uint32_t rank;      /* BROKEN: the member that is lost or differs; otherwise the sender */
    uint32_t cause;     /* BROKEN: enum ofp_group_cause; ABORT: the reason follows, with a zero at its end */
    uint64_t sequence;  /* of a collective; WANT, STARTED: how many were started */
    uint64_t signature; /* of a collective */
};

/* The state of one member, as far as this member knows it. */
struct ofpi_group_member {
    uint64_t started; /* collectives that it has started, at least */
    uint32_t wanted;  /* `is_wanted`: when so many were started here, it is told; the lower bits */
    bool is_wanted;
    bool is_asked; /* the member will answer how many it has started */
    bool is_gone;  /* a message of an agreement could not be delivered */
};

struct ofpi_group_agreement;

struct ofp_group {
    struct ofpi_domain *domain;        /* constant */
    struct ofpi_endpoint *endpoint;    /* NULL once that is closed */
    struct ofp_list node;              /* in domain->groups until it is closed */
    uint32_t number;                   /* constant: this endpoint's own name for the group */
    uint32_t size, rank;               /* constant once it is joined, as the next two */
    uint32_t *peers, *numbers;         /* by rank; in the memory of `members`; NULL until the group is joined */
    uint32_t *incarnations;            /* by rank, as these: what its messages are bound to; 0: nothing yet */
    struct ofpi_group_member *members; /* by rank; owned; NULL until the group is joined */
    uint64_t sequence;                 /* of the next collective */
    uint64_t started;                  /* collectives that all members have started, at least */
    uint64_t next_wanted;              /* the smallest `wanted` of all members; UINT64_MAX: none */
    struct ofp_list running;           /* struct ofpi_collective.node, oldest first */
    uint32_t running_count;
    uint32_t waiting; /* threads that wait for a collective to end before they start another */
    bool closed;
    struct ofpi_turn due;          /* the group has to send or handle control messages; control.c */
    bool hears;                    /* `incoming` is posted */
    bool has_heard;                /* a control message is in `incoming` */
    bool breaks;                   /* the others have to be told that it is broken */
    bool asks;                     /* members that a collective waits for have to be asked */
    struct ofpi_control *incoming; /* in the memory of `members`, with room for what follows */
    uint64_t incoming_length, incoming_size;
    struct ofpi_group_agreement *agreement; /* owned; NULL: no agreement was heard of; group_agreement.h */
    bool is_on_one_host;                    /* constant once it is joined */
    bool serves;                            /* it is closed, and others may need its last decision: this is a use */
    struct ofpi_owner control_receive, control_send;
    struct ofpi_owner drain_receive;      /* of what others still send to collectives of a broken group; drain.h */
    bool is_broken;                       /* others may still send, and do not know it */
    bool drains;                          /* `drain_receive` is posted */
    bool has_drained;                     /* a receive was posted, and this is a use until the endpoint closes */
    void *drained;                        /* a bounce buffer of the endpoint, for `drain_receive`; NULL: none */
    struct ofpi_owner question_send;      /* of a message to a member that this one waits for */
    struct ofp_timer patience;            /* runs while collectives run: ask after a second without a change */
    uint64_t patience_period;             /* ns */
    uint64_t watched, watched_round;      /* the oldest collective, by sequence, when the timer last expired */
    uint32_t watched_periods;             /* for how many of them it has not changed */
    uint64_t signatures[OFPI_SIGNATURES]; /* of the last collectives, by sequence */
    struct ofp_group_state state;
    int32_t error; /* the group is broken: all that runs ends with this error, and nothing starts; 0: it is not */
    /* The handle and each collective, prepared ones included; the last one frees the group. Without the lock. */
    _Atomic uint32_t uses;
};

/* 0, or why no collective can be started. */
int ofpi_group_check(const struct ofp_group *group);
/* Whether a closed group has nothing posted at its endpoint any more, which is open. */
static inline bool ofpi_group_is_over(const struct ofp_group *group)
{
    return group->closed && !group->serves && !group->has_drained && group->endpoint && ofp_list_empty(&group->running);
}
/* The group is over (above), or its endpoint closes: it leaves the endpoint. */
void ofpi_group_leave_endpoint(struct ofp_group *group);
/* One use ends. The lock need not be held. */
void ofpi_group_release(struct ofp_group *group);

#endif
