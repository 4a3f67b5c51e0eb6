/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan, from which a schedule is computed, and the steps of a schedule. */
#ifndef OFPI_SCHEDULE_PLAN_H
#define OFPI_SCHEDULE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "ofipy/collective.h"

/* Members of a group. */
#define OFPI_RANKS_MAX (1u << 24)
/* Steps of one round: both directions of a window of an alltoall, and its copies. */
#define OFPI_STEPS_MAX 96u
/* Messages that one round of a gather or scatter has at its root. */
#define OFPI_LINEAR_WINDOW 64u
/* Partners of one round of an alltoall. */
#define OFPI_PAIRS_WINDOW 32u
/* Bytes of a message of a pipelined broadcast or scan. */
#define OFPI_PIPELINE_PIECE 65536u

/* How a kind is carried out; docs/explanation/collectives.md has the table. */
enum ofpi_algorithm {
    OFPI_DISSEMINATION,
    OFPI_BINOMIAL,
    OFPI_PIPELINED_TREE,
    OFPI_SCATTERED_REDUCE, /* each member reduces a part, which the root gathers */
    OFPI_DOUBLING,
    OFPI_HALVING,
    OFPI_RING,
    OFPI_BRUCK,
    OFPI_PAIRWISE,
    OFPI_LINEAR,
    OFPI_CHAIN,
};

/*
 * One collective, as one member takes part in it. Offsets are bytes. The caller owns the arrays.
 *
 * A block is what one member contributes to, or gets from, a collective that concatenates. Without arrays all blocks
 * are `count` elements long. `sources` has the places of the blocks in IN (scatter, alltoall, reduce_scatter), `targets`
 * those in OUT (gather, allgather, alltoall): size + 1 offsets, the last one is the end. A member that has no such
 * buffer may have no array, but then `own` says how long its own block is.
 */
struct ofpi_plan {
    enum ofp_collective_kind kind;
    enum ofpi_algorithm algorithm; /* ofpi_plan_choose */
    uint32_t size, rank, root;
    uint32_t element; /* bytes of one */
    bool in_place;    /* IN is OUT; alltoall, reductions of whole vectors, and scans */
    bool is_vector;   /* blocks differ in length */
    uint64_t count;   /* elements of the vector, or of a block */
    uint64_t own;     /* bytes of this member's block; `is_vector` of gather and scatter only */
    const uint64_t *sources, *targets;
};

/* Memory of a member. IN and OUT are the caller's; TEMP is ofpi_plan_compute_temporary bytes. */
enum ofpi_buffer { OFPI_IN, OFPI_OUT, OFPI_TEMP };

struct ofpi_place {
    enum ofpi_buffer buffer;
    uint64_t offset;
};

/*
 * Steps. The transfers of a round may run at the same time and in any order; a reduction may be computed as soon as its
 * message is there. Copies follow, in their order, when all transfers have ended. In one round no transfer reads what
 * another step writes, except for a copy. A copy that is `apart` has no such relation to any step: it may also be made
 * while the transfers run. A round has one of them at most.
 */
enum ofpi_step_kind {
    OFPI_STEP_SEND,    /* `from` to `rank`; `reduced`: its receiver reduces it */
    OFPI_STEP_RECEIVE, /* into `to` from `rank` */
    OFPI_STEP_REDUCE,  /* receive from `rank`, and to = from op message; `lower`: to = message op from */
    OFPI_STEP_COPY,    /* to = from */
};

struct ofpi_step {
    enum ofpi_step_kind kind;
    uint32_t rank;
    bool reduced, lower, apart;
    struct ofpi_place from, to;
    uint64_t length; /* bytes; 0 in barriers only */
};

#endif
