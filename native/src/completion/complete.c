/* SPDX-License-Identifier: BSD-3-Clause */
#include "completion/complete.h"

#include "base/check.h"
#include "completion/completion_queue.h"
#include "completion/counter.h"
#include "completion/request_finish.h"
#include "object/count.h"
#include "object/domain.h"
#include "object/operation.h"
#include "object/owner.h"
#include "progress/wait.h"

/* Deliver a completion to the owner of its operation: a request, an object, or the queue. */
static inline void deliver_completion(struct ofpi_endpoint *endpoint, uint64_t op_flags,
                                      struct ofp_completion *completion)
{
    struct ofpi_domain *domain = endpoint->domain;

    if (op_flags & OFPI_REQUEST) {
        /*
         * A request that ends within its call stores no completion, so its caller could not read these members. For the
         * same result in all cases, only receives report more than an error.
         */
        if (!(completion->flags & OFP_COMPLETED_RECV)) {
            completion->length = completion->data = completion->tag = 0;
            completion->source = OFP_PEER_UNKNOWN;
        }
        ofpi_request_finish((struct ofp_request *)(uintptr_t)completion->context, completion);
    } else if (__builtin_expect(op_flags & OFPI_OWNED, 0)) {
        struct ofpi_owner *owner = (struct ofpi_owner *)(uintptr_t)completion->context;

        /* `finish` delivers the completion to the next owner through this function, which then wakes the waiters. */
        owner->finish(owner, &endpoint->base, op_flags, completion);
        return;
    } else {
        bool receive = completion->flags & OFPI_COMPLETED_AT_RECEIVER;
        bool selective = endpoint->selective_completion & (receive ? OFP_SELECTIVE_RECEIVE : OFP_SELECTIVE_TRANSMIT);
        bool silent = op_flags & (OFP_INJECT | OFPI_COPIED) || (selective && !(op_flags & OFP_COMPLETION));

        /* An operation that needs no entry gets one if it fails (fi_cq(3)). */
        if (silent && !completion->error)
            return;
        ofpi_cq_push(receive ? endpoint->rx_cq : endpoint->tx_cq, completion);
    }
    if (__builtin_expect(domain->leader || domain->followers, 0))
        ofpi_domain_wake(domain);
}

void ofpi_owner_deliver(const struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                        struct ofp_completion *completion)
{
    completion->context = owner->before_context;
    deliver_completion((struct ofpi_endpoint *)endpoint, (op_flags & ~OFPI_OWNER_BITS) | owner->before_bits,
                       completion);
}

void ofpi_endpoint_complete(struct ofp_endpoint *handle, uint64_t op_flags, struct ofp_completion *completion)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;

    OFPI_CHECK(ofpi_domain_is_held(endpoint->domain) && completion->error >= 0);
    completion->endpoint = handle->id;
    /* Peeking at a message, and setting one aside, transfer nothing and are not counted. */
    if (!(op_flags & OFP_PEEK) && !(completion->flags & OFP_COMPLETED_CLAIM))
        ofpi_counters_count(endpoint, completion->flags, completion->length, completion->error);
    deliver_completion(endpoint, op_flags, completion);
}

void ofpi_message_complete(struct ofp_endpoint *handle, uint64_t op_flags, const struct ofp_message *message,
                           struct ofp_completion *completion)
{
    if (completion->flags & OFP_COMPLETED_RECV && !completion->error && !(op_flags & (OFP_PEEK | OFP_DISCARD)) &&
        !(completion->flags & OFP_COMPLETED_CLAIM))
        ofpi_message_count_received((struct ofpi_endpoint *)handle, message);
    ofpi_endpoint_complete(handle, op_flags, completion);
}
