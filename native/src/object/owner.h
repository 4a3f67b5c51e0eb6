/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of an operation gets its completion. `context` names the owner, and two bits of the operation's flags,
 * which callers of ofp_post cannot set, give its kind:
 *
 *   neither bit    the application: `context` is its own value, the completion enters the queue
 *   OFPI_REQUEST   `context` is a struct ofp_request *, which completes
 *   OFPI_OWNED     `context` is a struct ofpi_owner *, whose `finish` is called
 *
 * An object stands before another owner and stores the context and bits of that owner. Its `finish` delivers the
 * completion to that owner with ofpi_owner_deliver, changed or not, or stores it. A context that an application names
 * is that of the innermost owner.
 */
#ifndef OFPI_OWNER_H
#define OFPI_OWNER_H

#include "ofipy/provider.h"

#define OFPI_REQUEST (1ull << 62)
#define OFPI_OWNED (1ull << 60)
#define OFPI_OWNER_BITS (OFPI_REQUEST | OFPI_OWNED)

/* A part of the object that owns, which lives until the operation has ended; `finish` may free it. */
struct ofpi_owner {
    /*
     * The operation has ended; one with OFP_MULTI_RECV in op_flags only if the completion says OFP_COMPLETED_MULTI_RECV. The
     * endpoint has counted it, once, whoever passes it on. The domain's lock is held, and a walk of the receive context or a
     * callback of the provider may be under way: `finish` posts nothing, cancels nothing and loses no peer.
     */
    void (*finish)(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                   struct ofp_completion *completion);
    uint64_t before_context;
    uint64_t before_bits; /* of OFPI_OWNER_BITS */
};

/* The owner of an operation with OFPI_DELAYED. */
struct ofpi_delayed_owner {
    struct ofpi_owner owner; /* first */
    uint64_t not_before;     /* when the transport may have it (ns) */
};

/* Stand before the owner of an operation that is about to be posted. */
static inline void ofpi_owner_enter(struct ofpi_owner *owner, struct ofp_operation *op)
{
    owner->before_context = op->context;
    owner->before_bits = op->flags & OFPI_OWNER_BITS;
    op->context = (uint64_t)(uintptr_t)owner;
    op->flags = (op->flags & ~OFPI_OWNER_BITS) | OFPI_OWNED;
}

/* The innermost owner of an operation, by whose context the application names it. Its bits are 0 or OFPI_REQUEST. */
static inline uint64_t ofpi_owner_find_innermost(uint64_t op_context, uint64_t op_flags, uint64_t *bits)
{
    while (op_flags & OFPI_OWNED) {
        const struct ofpi_owner *owner = (const struct ofpi_owner *)(uintptr_t)op_context;

        op_context = owner->before_context;
        op_flags = owner->before_bits;
    }
    *bits = op_flags & OFPI_OWNER_BITS;
    return op_context;
}

/* Whether an operation is the one that `context` names together with the bits of `flags`. */
static inline bool ofpi_owner_is_same(uint64_t op_context, uint64_t op_flags, uint64_t context, uint64_t flags)
{
    uint64_t bits;

    return ofpi_owner_find_innermost(op_context, op_flags, &bits) == context && bits == (flags & OFPI_OWNER_BITS);
}

#endif
