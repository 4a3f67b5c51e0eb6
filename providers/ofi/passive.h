/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and their connection requests. Guarded by the core's domain lock. */
#ifndef OFI_PASSIVE_H
#define OFI_PASSIVE_H

#include "bridge.h"

struct bridge_listener;

/* A connection request of the core or of an endpoint that was opened from it; freed when it is answered. */
struct bridge_request {
    struct bridge_listener *listener; /* referenced; counted in its `requests` */
    struct lf_info *info;             /* owned */
};

extern const struct ofp_passive_ops bridge_passive_ops;
/* Reject and free a request. */
void bridge_request_reject(struct bridge_request *request, const void *data, size_t length);
/* Free a request that was answered. */
void bridge_request_free(struct bridge_request *request);

#endif
