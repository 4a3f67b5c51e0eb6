/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and the requests that come by them. Guarded by the core's domain lock. */
#ifndef OFI_PASSIVE_H
#define OFI_PASSIVE_H

#include "bridge.h"

struct bridge_listener;

/* A request that the core has, or an endpoint that was opened from it; freed with its answer. */
struct bridge_request {
    struct bridge_listener *listener; /* held */
    struct lf_info *info;             /* owned */
};

extern const struct ofp_passive_ops bridge_passive_ops;
/* Say no. */
void bridge_request_reject(struct bridge_request *request, const void *data, size_t length);
/* Answered: let go of it. */
void bridge_request_free(struct bridge_request *request);

#endif
