/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of endpoints, and the collectives of a group.
 *
 * A group is this process's view of an ordered set of endpoints. All members start the same collectives in the same
 * order; the core counts them, and neither another group's messages nor the program's own match them. A collective is a
 * request (request.h): it advances in every round of progress of the domain, whichever thread makes it.
 */
#ifndef OFIPY_COLLECTIVE_H
#define OFIPY_COLLECTIVE_H

#include "ofp.h"
#include "request.h"

enum ofp_collective_kind {
    OFP_COLLECTIVE_BARRIER = 0,
    OFP_COLLECTIVE_BROADCAST = 1,
    OFP_COLLECTIVE_REDUCE = 2,
    OFP_COLLECTIVE_ALLREDUCE = 3,
    OFP_COLLECTIVE_GATHER = 4,
    OFP_COLLECTIVE_SCATTER = 5,
    OFP_COLLECTIVE_ALLGATHER = 6,
    OFP_COLLECTIVE_ALLTOALL = 7,
    OFP_COLLECTIVE_REDUCE_SCATTER = 8,
    OFP_COLLECTIVE_SCAN = 9,
    OFP_COLLECTIVE_EXSCAN = 10
};

/* In place of a kind, of ofp_collective_query alone: the request is of ofp_group_agree. */
#define OFP_COLLECTIVE_AGREEMENT 11

/* Reductions work on the types of enum ofp_datatype and on this one, which has libfabric's number. */
#define OFP_BFLOAT16 17

/* Flags of a collective. */
#define OFP_COLLECTIVE_VECTOR 0x1 /* blocks differ in length: gather, scatter, allgather, alltoall, reduce_scatter */
/*
 * Members do not know how much they get: the result is memory of the core. Broadcast, gather, scatter, allgather,
 * alltoall, of bytes.
 */
#define OFP_COLLECTIVE_SIZED 0x2
#define OFP_COLLECTIVE_FLAGS 0x3

/* Of OFP_COLLECTIVE_SIZED, valid once the request has finished without an error. Zero it before; free it after. */
struct ofp_collective_result {
    void *memory;
    uint64_t length;
    uint64_t *ends; /* of each block, in the memory */
    uint64_t blocks;
};

/*
 * One collective. A block is what one member contributes or gets where blocks of all members are concatenated. Both
 * buffers may be one memory, for a collective in place; a block's buffer may also be the member's own block of the other
 * buffer. They must not overlap otherwise. The memory stays in use until the request has finished.
 *
 * kind                source                    target
 * BROADCAST           SIZED: at root            the vector
 * REDUCE              the vector                at root: the vector
 * ALLREDUCE SCAN      the vector                the vector
 * EXSCAN              the vector                the vector; stays as it is at rank 0
 * GATHER              a block                   at root: all blocks
 * SCATTER             at root: all blocks       a block
 * ALLGATHER           a block                   all blocks
 * ALLTOALL            all blocks                all blocks
 * REDUCE_SCATTER      all blocks                a block
 */
struct ofp_collective {
    uint32_t kind; /* enum ofp_collective_kind */
    uint32_t root;
    uint32_t atomic_op; /* of reductions: MIN MAX SUM PROD LOR LAND BOR BAND LXOR BXOR */
    uint32_t datatype;  /* of reductions; otherwise OFP_UINT8, and counts are bytes */
    uint64_t flags;
    uint64_t count; /* elements of the vector, or of a block; with OFP_COLLECTIVE_VECTOR of the member's own block */
    uint64_t source, target; /* offsets */
    uint32_t source_region, target_region;
    /* Elements of each block where the buffer has all blocks and they differ in length; copied. */
    const uint64_t *source_counts, *target_counts;
    struct ofp_collective_result *result; /* OFP_COLLECTIVE_SIZED; stays in use as the memory does */
};

struct ofp_group;

/* As ofp_group_open's `wanted`: any number. A wanted one is from OFP_GROUP_WANTED on. */
#define OFP_GROUP_ANY 0xffffffffu
#define OFP_GROUP_WANTED 0x80000u
#define OFP_GROUP_LIMIT 0x100000u

/*
 * Begin a group. `number` tells its messages from those of other groups at this endpoint: each member must know it of
 * all. `wanted`: a number that all members have computed alike, for the first exchange of members that have no group
 * yet; it may be in use by others. -EOPNOTSUPP: the transport carries no messages of groups. -EBUSY: over a transport
 * that matches receives itself, a posted one would get messages of groups.
 */
int ofp_group_open(struct ofp_endpoint *endpoint, uint32_t wanted, uint32_t *number, struct ofp_group **group);
/* Flags of a join. */
#define OFP_GROUP_ONE_HOST 0x1 /* all members are on one host: an agreement needs no majority */
/*
 * Its `size` members, of which this endpoint is number `rank`: peers (the own one is ignored) and numbers by rank, which
 * are copied. Messages that came before are kept. -EALREADY: it has members.
 */
int ofp_group_join(struct ofp_group *group, uint32_t size, uint32_t rank, const uint32_t *peers,
                   const uint32_t *numbers, uint32_t flags);
/* Why a group is broken. */
#define OFP_GROUP_LOST_MAX 16
#define OFP_GROUP_REASON_MAX 200 /* bytes of the reason of an abort, with the zero at its end */
enum ofp_group_cause {
    OFP_GROUP_CAUSE_ERROR = 0,    /* `error` says it */
    OFP_GROUP_CAUSE_ABORT = 1,    /* `rank` has aborted it: `reason` */
    OFP_GROUP_CAUSE_EXPELLED = 2, /* the others have agreed that this member is dead */
    OFP_GROUP_CAUSE_MINORITY = 3  /* too few members could be reached to agree */
};
struct ofp_group_state {
    int32_t error;                     /* of its collectives; 0: it is not broken */
    uint32_t lost_count;               /* members that are gone, as far as this one knows */
    uint32_t lost[OFP_GROUP_LOST_MAX]; /* their ranks */
    /* OFP_EMISMATCH: the member and its call, by signature; the number of the call; the own signature of that number. */
    uint32_t rank;
    uint64_t sequence, theirs, mine;
    uint32_t cause; /* enum ofp_group_cause */
    char reason[OFP_GROUP_REASON_MAX];
};
/* -ECANCELED: its domain is closed. */
int ofp_group_query(struct ofp_group *group, struct ofp_group_state *state);
/* Break the group at all members, which get the reason; a longer one is cut. A group that is broken stays as it is. */
int ofp_group_abort(struct ofp_group *group, const char *reason);

/* In place of the value of a member: it is dead. */
#define OFP_GROUP_DEAD 0xffffffffu
struct ofp_agreement_result {
    uint64_t flags;   /* of all members that are not dead, combined by and */
    uint32_t *values; /* theirs, by rank; memory of the caller for as many as the group has members */
};
/*
 * Agree, also if the group is broken: a request that ends when all members that live have called it, at all of them with
 * the same result. `value` is not OFP_GROUP_DEAD. If members are dead the group breaks. The result stays in use until
 * the request has finished. -EBUSY: an agreement of this group runs here. A member that the others take for dead gets
 * the cause EXPELLED.
 */
ofp_request_t ofp_group_agree(struct ofp_group *group, uint64_t flags, uint32_t value,
                              struct ofp_agreement_result *result);
/*
 * Its collectives end with ECANCELED, those that are prepared cannot be started. The endpoint's close does it, too. 0, or
 * the error of a thread that may not enter the domain. Freeing has no effect before the close.
 */
int ofp_group_close(struct ofp_group *group);
void ofp_group_free(struct ofp_group *group);

/*
 * Start the next collective of the group. Returns a request. `how`: 0, or OFP_START_AT_ONCE (request.h). While 64
 * collectives of the group run, the call makes progress for `timeout` nanoseconds (negative: for ever), but at most a
 * second: then -EAGAIN. -EINVAL: the description is wrong; -ENOTCONN: the group was not joined; -ECANCELED: it is
 * closed. Nothing was started then, and the others of the group have no such collective from this member.
 */
ofp_request_t ofp_collective_start(struct ofp_group *group, const struct ofp_collective *call, uint32_t how,
                                   int64_t timeout);
/* A request that ofp_start starts, each time as the next collective of the group. Not for OFP_COLLECTIVE_SIZED. */
ofp_request_t ofp_collective_prepare(struct ofp_group *group, const struct ofp_collective *call);
/*
 * Collectives as operations, OFP_BARRIER to OFP_GATHER: ofp_post, ofp_post_after, ofp_work_queue, ofp_request_start and
 * ofp_prepare take their records, also among others. Each start is the next collective of the group, as by
 * ofp_collective_start, and other members may start theirs in either way.
 *
 * peer                          number of the group at this endpoint
 * tag                           rank of the root, of those that have one
 * atomic_op, datatype           of reductions
 * length                        bytes of the vector, or of a block
 * region, offset                the source; of OFP_BROADCAST the vector
 * result_region, result_offset  the target
 *
 * The completion has OFP_COMPLETED_COLLECTIVE, and the group's number as its source. No counter of an endpoint counts it;
 * the target of deferred work does. The memory stays in use until then. ofp_cancel finds no collective that has started.
 * -ENOENT: the endpoint has no group of this number; -EAGAIN: 64 collectives of the group run.
 */
/* A collective that runs, and members that it waits for; after the time of a wait, that is. */
#define OFP_COLLECTIVE_AWAITED_MAX 16
struct ofp_collective_state {
    uint64_t sequence; /* its number in the group */
    uint32_t kind;
    uint32_t awaited_count; /* of all, which may be more than `awaited` has */
    uint32_t awaited[OFP_COLLECTIVE_AWAITED_MAX];
};
/* -EINVAL: the request is no collective, or does not run; -ESTALE, -ECANCELED: it is over. */
int ofp_collective_query(ofp_request_t request, struct ofp_collective_state *state);
void ofp_collective_result_free(struct ofp_collective_result *result);
/* Bytes of an element of a reduction; 0: the combination is not valid. */
uint64_t ofp_reduction_size(uint32_t atomic_op, uint32_t datatype);
/* out = left op right, of a valid reduction, as the core computes it. */
void ofp_reduction_execute(uint32_t atomic_op, uint32_t datatype, void *out, const void *left, const void *right,
                           uint64_t count);

#endif
