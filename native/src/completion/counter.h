/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: the number of completed operations of a class, or of their bytes. The domain's lock guards all members. */
#ifndef OFPI_COUNTER_H
#define OFPI_COUNTER_H

#include "object/endpoint.h"
#include "progress/sleeper.h"

/* The value of a counter at which deferred work becomes due. A member of that work's object. */
struct ofpi_threshold {
    struct ofp_list node; /* in the counter's thresholds, or in domain->due */
    uint64_t value;
    struct ofp_counter *counter; /* NULL: the value has been reached, or the threshold was not added */
};

struct ofp_counter {
    struct ofpi_domain *domain;
    struct ofp_list node;       /* in domain->counters */
    uint32_t uses;              /* endpoints bound to it, one for each class */
    uint32_t events;            /* enum ofp_counter_events */
    uint32_t waiting;           /* threads in ofp_counter_wait */
    bool closing;               /* set by ofp_counter_retire, and never cleared: waits end, calls are refused */
    struct ofp_list thresholds; /* struct ofpi_threshold, smallest value first */
    uint64_t value, errors;
    struct ofpi_sleeper sleeper;
    uint64_t awaited,
        known_errors; /* while armed: wake when `value` reaches the first or `errors` differs from the second */
};

/* Count one operation that has ended; `error` is 0 or a positive errno. */
void ofpi_counter_count(struct ofp_counter *counter, uint64_t length, int error);
void ofpi_counter_set_value(struct ofp_counter *counter, uint64_t value);
/* Make the threshold due when the counter reaches the value, or at once if it has reached it already. */
void ofpi_counter_add_threshold(struct ofp_counter *counter, struct ofpi_threshold *threshold, uint64_t value);
void ofpi_endpoint_count(struct ofpi_endpoint *endpoint, uint64_t completion_flags, uint64_t length, int error);

/* Count an operation in the counter of its class (OFP_COMPLETED_…), if the endpoint has one. */
static inline void ofpi_counters_count(struct ofpi_endpoint *endpoint, uint64_t completion_flags, uint64_t length,
                                       int error)
{
    if (__builtin_expect(endpoint->counted, 0))
        ofpi_endpoint_count(endpoint, completion_flags, length, error);
}

/* Whether deferred work, an endpoint or a region of the domain may use the counter. May be NULL. */
bool ofpi_counter_is_usable(const struct ofpi_domain *domain, const struct ofp_counter *counter);
/* Check the counters of a new endpoint. -EINVAL: a counter is closed or belongs to another domain. */
int ofpi_counters_check(const struct ofpi_domain *domain, struct ofp_counter *const *counters);
void ofpi_counters_bind(struct ofpi_endpoint *endpoint, struct ofp_counter *const *counters);
void ofpi_counters_unbind(struct ofpi_endpoint *endpoint);

/* Every public call on a counter starts with this function. 0: the domain's lock is held. */
int ofpi_counter_enter(struct ofp_counter *counter);

#endif
