/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. The domain's lock guards all members. */
#ifndef OFPI_COMPLETION_QUEUE_H
#define OFPI_COMPLETION_QUEUE_H

#include "object/domain.h"
#include "progress/sleeper.h"

struct ofp_cq {
    struct ofpi_domain *domain;
    struct ofp_list node;        /* in domain->queues */
    uint32_t uses;               /* endpoints bound to it */
    struct ofp_completion *ring; /* `size` entries, a power of two */
    uint64_t size, head, count;
    struct ofp_list spill; /* struct ofpi_entry: later completions than those in the ring, oldest first */
    uint64_t spilled;
    struct ofpi_entry *overflow; /* the entry in `spill` that counts lost events of peers' accesses, or NULL */
    struct ofp_list finished;    /* finished requests with `notify` */
    bool signalled;              /* ofp_cq_signal, not yet consumed */
    bool closing;                /* set by ofp_cq_retire, and never cleared: waits end, calls are refused */
    uint32_t waiting;            /* threads in ofp_cq_wait */
    struct ofpi_sleeper sleeper;
};

/* Every public call on a queue starts with this function. 0: the domain's lock is held. */
static inline int ofpi_cq_enter_as(struct ofp_cq *cq, bool at_once)
{
    int result = ofpi_domain_enter_as(cq->domain, at_once);

    if (__builtin_expect(!result && cq->closing, 0)) {
        ofpi_domain_refuse(cq->domain);
        result = -ECANCELED;
    }
    return result;
}
static inline int ofpi_cq_enter(struct ofp_cq *cq) { return ofpi_cq_enter_as(cq, false); }

/* Add the completion of a local operation, which has a reserved entry. */
void ofpi_cq_push(struct ofp_cq *cq, const struct ofp_completion *completion);
/*
 * Add the completion of a peer's access, which has no reserved entry. Out of memory: one entry with ENOBUFS counts the
 * lost completions in `length`.
 */
void ofpi_cq_push_unreserved(struct ofp_cq *cq, const struct ofp_completion *completion);
/* Wake the users of the queue's descriptor, if it is armed. */
void ofpi_cq_notify(struct ofp_cq *cq);

#endif
