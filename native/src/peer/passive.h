/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and the requests that they took. The domain's lock guards all. */
#ifndef OFPI_PASSIVE_H
#define OFPI_PASSIVE_H

#include "object/domain.h"
#include "ofipy/connect.h"

struct ofpi_passive;

/* A request that a listener took. Owned by the listener, from the opening of an endpoint on by that one's connection. */
struct ofpi_connection_request {
    struct ofp_list node; /* in the listener's list; unlinked once it belongs to an endpoint */
    uint64_t handle;      /* names it in events; never used again in the domain */
    uint64_t request;     /* the provider's name */
    struct ofpi_passive *passive;
    size_t address_length;
    char address[];
};

/* The request with this handle, NULL if there is none that is unanswered. */
struct ofpi_connection_request *ofpi_connection_request_find(struct ofpi_domain *domain, uint64_t handle);
/* It leaves its listener. */
void ofpi_connection_request_detach(struct ofpi_connection_request *request);
int ofpi_connection_requested(struct ofp_passive *passive, uint64_t request, const void *address, size_t address_length,
                              const void *data, size_t length);

#endif
