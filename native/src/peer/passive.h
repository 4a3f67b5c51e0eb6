/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and the connection requests that they received. The domain's lock guards all. */
#ifndef OFPI_PASSIVE_H
#define OFPI_PASSIVE_H

#include "object/domain.h"
#include "ofipy/connect.h"

struct ofpi_passive;

/*
 * A connection request that a listener received. The listener owns it until an endpoint is opened from it; then the
 * endpoint's connection owns it.
 */
struct ofpi_connection_request {
    struct ofp_list node; /* in the listener's list; unlinked once an endpoint's connection owns the request */
    uint64_t handle;      /* the request's number in events; never reused in the domain */
    uint64_t request;     /* the provider's number for it */
    struct ofpi_passive *passive;
    size_t address_length;
    char address[];
};

/* The request with this handle, NULL if there is none that is unanswered. */
struct ofpi_connection_request *ofpi_connection_request_find(struct ofpi_domain *domain, uint64_t handle);
/* Detach the request from its listener. */
void ofpi_connection_request_detach(struct ofpi_connection_request *request);
int ofpi_connection_requested(struct ofp_passive *passive, uint64_t request, const void *address, size_t address_length,
                              const void *data, size_t length);

#endif
