/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Table of the operations' properties. Use it in place of comparing codes: codes are only appended, so their order has
 * no meaning.
 */
#ifndef OFIPY_OPERATION_H
#define OFIPY_OPERATION_H

#include "ofipy/types.h"

/* Channels of messages. Receives match messages of their own channel only. */
enum ofp_channel {
    OFP_CHANNEL_MESSAGE = 0, /* without tags */
    OFP_CHANNEL_TAGGED = 1,
    OFP_CHANNEL_INTERNAL = 2 /* the core's own, with tags */
};

/* Tags of OFP_CHANNEL_INTERNAL are below 2^52. */
#define OFP_INTERNAL_TAG_BITS 52

/* Traits of an operation. */
#define OFP_RECEIVES 0x1 /* a receive */
#define OFP_REMOTE 0x2   /* accesses memory of the peer; neither this nor OFP_RECEIVES: a send */
#define OFP_ATOMIC_KIND 0x4
#define OFP_READS 0x8     /* with OFP_REMOTE: fetches from the peer, into memory that must remain valid */
#define OFP_COMPARES 0x10 /* has a third operand */
#define OFP_OF_GROUP 0x20 /* a collective: no transfer, and no other trait, channel or right means anything */

struct ofp_operation_row {
    uint16_t code;          /* enum ofp_operation_code: the row's own place */
    uint8_t traits;         /* OFP_RECEIVES … */
    uint8_t channel;        /* enum ofp_channel; means nothing with OFP_REMOTE */
    uint32_t local_access;  /* OFP_ACCESS_…: the right that its local region must grant (fi_mr(3)) */
    uint64_t capability;    /* OFP_CAP_… that its endpoint needs; 0: only the core posts it, or OFP_OF_GROUP */
    uint32_t remote_access; /* rights of the target's region; use ofp_operation_remote_access */
    uint32_t flags;         /* OFP_INJECT …: those it may have, defaults of its endpoint included */
    uint32_t completed;     /* OFP_COMPLETED_… of its completion; 0: no counter counts it */
    uint32_t event;         /* OFP_COMPLETED_… of the event at the target of a remote operation */
};

/* Flags that the operations of a kind may have. */
#define OFP_RECEIVE_FLAGS                                                                                              \
    (OFP_COMPLETION | OFP_MORE | OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD | OFP_MULTI_RECV | OFP_BOUND)
#define OFP_TRANSMIT_FLAGS                                                                                             \
    (OFP_COMPLETION | OFP_MORE | OFP_FENCE | OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_BOUND)
#define OFP_SEND_FLAGS (OFP_TRANSMIT_FLAGS | OFP_INJECT | OFP_REMOTE_CQ_DATA | OFP_MATCH_COMPLETE)
#define OFP_ATOMIC_FLAGS (OFP_TRANSMIT_FLAGS | OFP_DEVICE_ATOMIC)
#define OFP_GROUP_FLAGS (OFP_COMPLETION | OFP_MORE)
#define OFP_REMOTE_BOTH (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE)

static const struct ofp_operation_row ofp_operation_rows[] = {
    {0, 0, 0, 0, 0, 0, 0, 0, 0}, /* no operation */
    {OFP_SEND, 0, OFP_CHANNEL_MESSAGE, OFP_ACCESS_SEND, OFP_CAP_MSG, 0, OFP_SEND_FLAGS,
     OFP_COMPLETED_SEND | OFP_COMPLETED_MSG, 0},
    {OFP_RECV, OFP_RECEIVES, OFP_CHANNEL_MESSAGE, OFP_ACCESS_RECV, OFP_CAP_MSG, 0, OFP_RECEIVE_FLAGS,
     OFP_COMPLETED_RECV | OFP_COMPLETED_MSG, 0},
    {OFP_TSEND, 0, OFP_CHANNEL_TAGGED, OFP_ACCESS_SEND, OFP_CAP_TAGGED, 0, OFP_SEND_FLAGS,
     OFP_COMPLETED_SEND | OFP_COMPLETED_TAGGED, 0},
    {OFP_TRECV, OFP_RECEIVES, OFP_CHANNEL_TAGGED, OFP_ACCESS_RECV, OFP_CAP_TAGGED, 0, OFP_RECEIVE_FLAGS,
     OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED, 0},
    {OFP_READ, OFP_REMOTE | OFP_READS, 0, OFP_ACCESS_READ, OFP_CAP_RMA, OFP_ACCESS_REMOTE_READ, OFP_TRANSMIT_FLAGS,
     OFP_COMPLETED_READ | OFP_COMPLETED_RMA, OFP_COMPLETED_REMOTE_READ},
    {OFP_WRITE, OFP_REMOTE, 0, OFP_ACCESS_WRITE, OFP_CAP_RMA, OFP_ACCESS_REMOTE_WRITE,
     OFP_TRANSMIT_FLAGS | OFP_INJECT | OFP_REMOTE_CQ_DATA, OFP_COMPLETED_WRITE | OFP_COMPLETED_RMA,
     OFP_COMPLETED_REMOTE_WRITE},
    {OFP_ATOMIC, OFP_REMOTE | OFP_ATOMIC_KIND, 0, OFP_ACCESS_WRITE, OFP_CAP_ATOMIC, OFP_ACCESS_REMOTE_WRITE,
     OFP_ATOMIC_FLAGS | OFP_INJECT, OFP_COMPLETED_ATOMIC | OFP_COMPLETED_WRITE,
     OFP_COMPLETED_ATOMIC | OFP_COMPLETED_REMOTE_WRITE},
    {OFP_FETCH_ATOMIC, OFP_REMOTE | OFP_ATOMIC_KIND | OFP_READS, 0, OFP_ACCESS_WRITE, OFP_CAP_ATOMIC, OFP_REMOTE_BOTH,
     OFP_ATOMIC_FLAGS, OFP_COMPLETED_ATOMIC | OFP_COMPLETED_READ, OFP_COMPLETED_ATOMIC | OFP_COMPLETED_REMOTE_READ},
    {OFP_COMPARE_ATOMIC, OFP_REMOTE | OFP_ATOMIC_KIND | OFP_READS | OFP_COMPARES, 0, OFP_ACCESS_WRITE, OFP_CAP_ATOMIC,
     OFP_REMOTE_BOTH, OFP_ATOMIC_FLAGS, OFP_COMPLETED_ATOMIC | OFP_COMPLETED_READ,
     OFP_COMPLETED_ATOMIC | OFP_COMPLETED_REMOTE_READ},
    {OFP_INTERNAL_SEND, 0, OFP_CHANNEL_INTERNAL, OFP_ACCESS_SEND, 0, 0, OFP_SEND_FLAGS, 0, 0},
    {OFP_INTERNAL_RECV, OFP_RECEIVES, OFP_CHANNEL_INTERNAL, OFP_ACCESS_RECV, 0, 0, OFP_RECEIVE_FLAGS, 0, 0},
    {OFP_BARRIER, OFP_OF_GROUP, 0, 0, 0, 0, OFP_GROUP_FLAGS, OFP_COMPLETED_COLLECTIVE, 0},
    {OFP_BROADCAST, OFP_OF_GROUP, 0, 0, 0, 0, OFP_GROUP_FLAGS, OFP_COMPLETED_COLLECTIVE, 0},
    {OFP_ALLTOALL, OFP_OF_GROUP, 0, 0, 0, 0, OFP_GROUP_FLAGS, OFP_COMPLETED_COLLECTIVE, 0},
    {OFP_ALLREDUCE, OFP_OF_GROUP, 0, 0, 0, 0, OFP_GROUP_FLAGS, OFP_COMPLETED_COLLECTIVE, 0},
    {OFP_ALLGATHER, OFP_OF_GROUP, 0, 0, 0, 0, OFP_GROUP_FLAGS, OFP_COMPLETED_COLLECTIVE, 0},
    {OFP_REDUCE_SCATTER, OFP_OF_GROUP, 0, 0, 0, 0, OFP_GROUP_FLAGS, OFP_COMPLETED_COLLECTIVE, 0},
    {OFP_REDUCE, OFP_OF_GROUP, 0, 0, 0, 0, OFP_GROUP_FLAGS, OFP_COMPLETED_COLLECTIVE, 0},
    {OFP_SCATTER, OFP_OF_GROUP, 0, 0, 0, 0, OFP_GROUP_FLAGS, OFP_COMPLETED_COLLECTIVE, 0},
    {OFP_GATHER, OFP_OF_GROUP, 0, 0, 0, 0, OFP_GROUP_FLAGS, OFP_COMPLETED_COLLECTIVE, 0},
};
#define OFP_OPERATION_COUNT (sizeof(ofp_operation_rows) / sizeof(ofp_operation_rows[0]))

/*
 * Names of the Python methods that post them. Not part of the rows, so that a row's size stays a power of two: the hot
 * path indexes the rows.
 */
static const char *const ofp_operation_names[] = {
    "",         "send",         "recv",           "tsend",          "trecv",    "read",    "write",
    "atomic",   "fetch_atomic", "compare_atomic", "internal",       "internal", "barrier", "broadcast",
    "alltoall", "allreduce",    "allgather",      "reduce_scatter", "reduce",   "scatter", "gather"};
_Static_assert(sizeof(ofp_operation_names) / sizeof(ofp_operation_names[0]) == OFP_OPERATION_COUNT, "a name a row");

/* The row of an operation code; the all-zero row for an unknown code, such as one from a peer. */
static inline const struct ofp_operation_row *ofp_operation_row(uint32_t code)
{
    return &ofp_operation_rows[code < OFP_OPERATION_COUNT ? code : 0];
}

static inline const char *ofp_operation_name(uint32_t code)
{
    return ofp_operation_names[code < OFP_OPERATION_COUNT ? code : 0];
}

/* Whether the operation has one of these traits. */
static inline bool ofp_operation_is(uint32_t code, uint32_t traits)
{
    return (ofp_operation_row(code)->traits & traits) != 0;
}

/* Access rights that the peer's region must grant. OFP_ATOMIC_READ needs no right to write. */
static inline uint32_t ofp_operation_remote_access(uint32_t code, uint32_t atomic_op)
{
    const struct ofp_operation_row *row = ofp_operation_row(code);
    bool only_reads = row->traits & OFP_READS && atomic_op == OFP_ATOMIC_READ;

    return only_reads ? row->remote_access & ~(uint32_t)OFP_ACCESS_REMOTE_WRITE : row->remote_access;
}

#endif
