/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of an operation receives its completion. `context` names the owner, and two bits of the operation's flags,
 * which callers of ofp_post cannot set, give its kind:
 *
 *   neither bit    the application: `context` is its own value, the completion enters the queue
 *   OFPI_REQUEST   `context` is a struct ofp_request *, which completes
 *   OFPI_OWNED     `context` is a struct ofpi_owner *, whose `finish` is called
 *
 * Owners can be nested: an outer owner stores the context and bits of the owner that it replaces. Its `finish` passes
 * the completion, changed or not, to that owner with ofpi_owner_deliver, or stores it. The context that an application
 * uses is that of the innermost owner.
 */
#ifndef OFPI_OWNER_H
#define OFPI_OWNER_H

#include "ofipy/provider.h"

#define OFPI_REQUEST (1ull << 62)
#define OFPI_OWNED (1ull << 60)
#define OFPI_OWNER_BITS (OFPI_REQUEST | OFPI_OWNED)

/* A member of the owning object, which must live until the operation has ended; `finish` may free it. */
struct ofpi_owner {
    /*
     * The operation has ended; one with OFP_MULTI_RECV in op_flags only if the completion says
     * OFP_COMPLETED_MULTI_RECV. The endpoint has counted it once, however many owners pass it on. The domain's lock is
     * held, and the caller may be in the middle of a walk of the receive context or of a provider's callback: `finish`
     * must not post, cancel, or mark a peer lost.
     */
    void (*finish)(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                   struct ofp_completion *completion);
    uint64_t before_context;
    uint64_t before_bits; /* of OFPI_OWNER_BITS */
};

/* The owner of an operation with OFPI_DELAYED. */
struct ofpi_delayed_owner {
    struct ofpi_owner owner; /* first */
    uint64_t not_before;     /* earliest time at which it may be posted to the transport (ns) */
};

/* Become the outermost owner of an operation that is about to be posted. */
static inline void ofpi_owner_enter(struct ofpi_owner *owner, struct ofp_operation *op)
{
    owner->before_context = op->context;
    owner->before_bits = op->flags & OFPI_OWNER_BITS;
    op->context = (uint64_t)(uintptr_t)owner;
    op->flags = (op->flags & ~OFPI_OWNER_BITS) | OFPI_OWNED;
}

/* The innermost owner's context, by which the application names the operation. `bits` is 0 or OFPI_REQUEST. */
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

/* Whether `context`, with the owner bits of `flags`, names this operation. */
static inline bool ofpi_owner_is_same(uint64_t op_context, uint64_t op_flags, uint64_t context, uint64_t flags)
{
    uint64_t bits;

    return ofpi_owner_find_innermost(op_context, op_flags, &bits) == context && bits == (flags & OFPI_OWNER_BITS);
}

#endif
