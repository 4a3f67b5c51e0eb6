/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal flag bits of an operation, and the properties in its row of the table. */
#ifndef OFPI_OPERATION_H
#define OFPI_OPERATION_H

#include <errno.h>

#include "ofipy/provider.h"

/*
 * Internal bit of ofp_operation.flags: an inject whose payload the core has copied, so the provider gets it as a plain
 * operation.
 */
#define OFPI_COPIED (1ull << 59)

/*
 * Internal bit of ofp_operation.flags, not of receives: a hook delays the operation, and its owner is a struct
 * ofpi_delayed_owner. The operation waits in the peer's backlog.
 */
#define OFPI_DELAYED (1ull << 57)

/* Completions that enter the receive queue. A released multi-receive buffer may have OFP_COMPLETED_MULTI_RECV alone. */
#define OFPI_COMPLETED_AT_RECEIVER (OFP_COMPLETED_RECV | OFP_COMPLETED_MULTI_RECV)

/* Internal bit of ofp_operation.flags: a receive with OFP_HOLD, in the form in which it is posted to the transport. */
#define OFPI_HELD (1ull << 58)
/*
 * With OFPI_HELD. Discarded: the message is dropped. Peeked: the message stays in the receive context as an unexpected
 * one.
 */
#define OFPI_DISCARDED (1ull << 57)
#define OFPI_PEEKED (1ull << 56)

/*
 * Internal bit of ofp_operation.flags: `iov` of the transfer is a buffer of the core's with the packed form of the layout
 * `packed`. Whoever has the transfer owns the buffer; a pending frees it.
 */
#define OFPI_PACKED (1ull << 55)

/*
 * The error of an operation that ends with the loss of its peer. One that is bound to an incarnation reports that this
 * has ended, whatever ended it.
 */
static inline int ofpi_loss_error_choose(uint64_t op_flags, int error)
{
    if (!(op_flags & OFP_BOUND) || error == ECANCELED || error == OFP_EPEERLEFT || error == OFP_EPEERDIED)
        return error;
    return OFP_EPEERLOST;
}

/* ---------------------------------------------------------------------------------------------------- the table */

/* The row of an operation that was checked, so that its code has a row. */
static inline const struct ofp_operation_row *ofpi_row_of_operation(const struct ofp_operation *op)
{
    return &ofp_operation_rows[op->op];
}
static inline bool ofpi_operation_has_trait(const struct ofp_operation *op, uint32_t traits)
{
    return ofpi_row_of_operation(op)->traits & traits;
}
static inline bool ofpi_operation_is_remote(const struct ofp_operation *op)
{
    return ofpi_operation_has_trait(op, OFP_REMOTE);
}
static inline bool ofpi_operation_is_atomic(const struct ofp_operation *op)
{
    return ofpi_operation_has_trait(op, OFP_ATOMIC_KIND);
}
static inline bool ofpi_operation_is_receive(const struct ofp_operation *op)
{
    return ofpi_operation_has_trait(op, OFP_RECEIVES);
}
/* The first check of a caller's operation: its code is known, and may have these flags. */
static inline bool ofpi_operation_is_known(const struct ofp_operation *op)
{
    return op->op < OFP_OPERATION_COUNT && !(op->flags & ~(uint64_t)ofpi_row_of_operation(op)->flags);
}

/* ------------------------------------------------------------------------------------------------- default flags */

/* Flags that an endpoint may set as defaults. */
#define OFPI_LEVELS (OFP_TRANSMIT_COMPLETE | OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)
#define OFPI_TX_DEFAULTS (OFP_INJECT | OFP_COMPLETION | OFPI_LEVELS)
#define OFPI_RX_DEFAULTS (OFP_COMPLETION | OFP_MULTI_RECV)
/* A posted receive's flags with defaults: only a plain receive becomes a multi-receive. */
static inline uint64_t ofpi_receive_flags(uint64_t flags, uint64_t defaults)
{
    bool plain = !(flags & (OFP_PEEK | OFP_CLAIM | OFP_DISCARD | OFP_HOLD));

    return flags | (plain ? defaults : defaults & ~(uint64_t)OFP_MULTI_RECV);
}

#endif
