/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: how many operations of a class have finished, or how many bytes they moved. The domain's lock guards all. */
#ifndef OFPI_COUNTER_H
#define OFPI_COUNTER_H

#include "object/endpoint.h"
#include "progress/sleeper.h"

/* A value of a counter at which deferred work becomes due; it is a part of that work. */
struct ofpi_threshold {
    struct ofp_list node; /* in the counter's thresholds, or in domain->due */
    uint64_t value;
    struct ofp_counter *counter; /* NULL: it has been reached, or nobody waits yet */
};

struct ofp_counter {
    struct ofpi_domain *domain;
    struct ofp_list node;       /* in domain->counters */
    uint32_t uses;              /* endpoints bound to it, one for each class */
    uint32_t events;            /* enum ofp_counter_events */
    uint32_t waiting;           /* threads in ofp_counter_wait */
    bool closing;               /* waits end, calls are refused; set for good by retiring */
    struct ofp_list thresholds; /* struct ofpi_threshold, by value */
    uint64_t value, errors;
    struct ofpi_sleeper sleeper;
    uint64_t awaited,
        known_errors; /* while armed: the user sleeps until this value, or until the error value differs from this one */
};

/* Count one operation that has ended; `error` is 0 or positive. */
void ofpi_counter_count(struct ofp_counter *counter, uint64_t length, int error);
void ofpi_counter_set_value(struct ofp_counter *counter, uint64_t value);
/* Make the threshold due when the counter reaches the value, which it may have reached already. */
void ofpi_counter_add_threshold(struct ofp_counter *counter, struct ofpi_threshold *threshold, uint64_t value);
void ofpi_endpoint_count(struct ofpi_endpoint *endpoint, uint64_t completion_flags, uint64_t length, int error);

/* Count an operation in the counter of its class (OFP_COMPLETED_…), if the endpoint has one. */
static inline void ofpi_counters_count(struct ofpi_endpoint *endpoint, uint64_t completion_flags, uint64_t length,
                                       int error)
{
    if (__builtin_expect(endpoint->counted, 0))
        ofpi_endpoint_count(endpoint, completion_flags, length, error);
}

/* Whether work, an endpoint or a region of the domain may use it. */
bool ofpi_counter_is_usable(const struct ofpi_domain *domain, const struct ofp_counter *counter);
/* The counters that an endpoint is opened with: 0, or -EINVAL for one of another domain or one that is closed. */
int ofpi_counters_check(const struct ofpi_domain *domain, struct ofp_counter *const *counters);
void ofpi_counters_bind(struct ofpi_endpoint *endpoint, struct ofp_counter *const *counters);
void ofpi_counters_unbind(struct ofpi_endpoint *endpoint);

/* Every public call on a counter starts with this, as those on queues: 0 with the lock held. */
int ofpi_counter_enter(struct ofp_counter *counter);

#endif
