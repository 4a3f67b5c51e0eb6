/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of a receive context, for the files of this folder only. The domain's lock guards them. */
#ifndef OFPI_RECEIVE_STATE_H
#define OFPI_RECEIVE_STATE_H

#include "match/lent.h"
#include "match/posted.h"
#include "match/unexpected.h"

struct ofpi_receive_context {
    struct ofpi_posted_receives posted;
    struct ofpi_unexpected_messages unexpected;
    struct ofpi_inflight_receives in_flight;
    struct ofpi_slab segments; /* struct ofpi_segments of all receivers */
    struct ofpi_slab many;     /* struct ofpi_many */
    uint64_t min_multi_recv;   /* bytes; applies to buffers posted from now on */
    struct ofpi_reserve *entries;
    struct ofpi_domain *domain;
    struct ofp_timer pull_timer; /* runs after an announced message was set aside; receive_fetch.c */
    void (*start_timer)(struct ofpi_domain *domain, struct ofp_timer *timer);
    void (*complete)(struct ofp_endpoint *endpoint, uint64_t op_flags, const struct ofp_message *message,
                     struct ofp_completion *completion);
};

/* How an operation ended; all zero: success. */
struct ofpi_receive_result {
    uint64_t flags; /* OFP_COMPLETED_CLAIM, OFP_COMPLETED_MULTI_RECV */
    uint64_t buffer_offset;
    int error; /* positive */
    int provider_error;
};

#endif
