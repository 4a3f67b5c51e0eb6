/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work that waits for a counter (fi_trigger(3)). Work is in one of three places: in the threshold list of its counter;
 * in domain->due when it is due; or, for an operation, in flight in the endpoint, with the work as its owner. The
 * domain's lock guards all.
 *
 * Counters change inside a provider's callbacks, where no operation may be posted. So due work is stored, and started
 * when the round of progress or the public call ends.
 */
#ifndef OFPI_DEFERRED_H
#define OFPI_DEFERRED_H

#include "completion/counter.h"
#include "object/owner.h"

struct ofpi_work {
    struct ofpi_owner owner;         /* of the operation that it posts */
    struct ofpi_threshold threshold; /* its node is unlinked while the operation is in flight */
    uint64_t id;
    uint32_t kind;                  /* enum ofp_work_kind */
    struct ofp_counter *target;     /* counter to change; may be NULL with an operation or a reduction */
    uint64_t value;                 /* for the target */
    struct ofpi_endpoint *endpoint; /* operations only */
    struct ofp_operation operation; /* and reductions */
    void *copy;                     /* owned: what the record pointed to */
};

/* Start due work; returns how many. Never call it from a provider's callback. */
int ofpi_works_start(struct ofpi_domain *domain);
/* Count the endpoint's due operations that have not started. */
void ofpi_works_count_due(const struct ofpi_endpoint *endpoint, struct ofpi_unsent *unsent);
/* Cancel the work of an endpoint, or the work that needs a counter, which has not started. */
void ofpi_works_leave_endpoint(struct ofpi_endpoint *endpoint);
void ofpi_works_leave_counter(struct ofp_counter *counter);
/* As ofp_cancel, for an operation that has not started. */
int ofpi_works_cancel(struct ofpi_endpoint *endpoint, uint64_t context);

#endif
