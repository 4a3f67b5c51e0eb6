/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work that waits for a counter (fi_trigger(3)). It is in one of three places: in the threshold list of its counter; due,
 * in domain->due; or, an operation only, under way in the endpoint, whose owner it is then.
 * The domain's lock guards all.
 *
 * Counters change inside a provider's callbacks, where no operation may be posted. So what becomes due is kept, and started
 * when the round of progress or the public call ends.
 */
#ifndef OFPI_DEFERRED_H
#define OFPI_DEFERRED_H

#include "completion/counter.h"
#include "object/owner.h"

struct ofpi_work {
    struct ofpi_owner owner;         /* of the operation that it posts */
    struct ofpi_threshold threshold; /* its node is in no list while that is under way */
    uint64_t id;
    uint32_t kind;                  /* enum ofp_work_kind */
    struct ofp_counter *target;     /* counter to change; may be NULL with an operation or a reduction */
    uint64_t value;                 /* for the target */
    struct ofpi_endpoint *endpoint; /* operations only */
    struct ofp_operation operation; /* and reductions */
    void *copy;                     /* owned: what the record pointed to */
};

/* Start what is due, never from within a provider's callback; returns how many. */
int ofpi_works_start(struct ofpi_domain *domain);
/* Those operations of an endpoint whose threshold is reached and that have not begun. */
void ofpi_works_count_due(const struct ofpi_endpoint *endpoint, struct ofpi_unsent *unsent);
/* What has not begun ends as cancelled: an endpoint's, or what needs a counter. */
void ofpi_works_leave_endpoint(struct ofpi_endpoint *endpoint);
void ofpi_works_leave_counter(struct ofp_counter *counter);
/* As ofp_cancel, for an operation that has not begun. */
int ofpi_works_cancel(struct ofpi_endpoint *endpoint, uint64_t context);

#endif
