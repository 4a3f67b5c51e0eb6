/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of endpoints of type MSG, and the listeners they come from. The domain's lock guards all.
 *
 * The peer behind a connection is a peer like any other (peer.c): posting, backlog, loss are those of peers. Here is what
 * only connections have: they are asked for, accepted or rejected, with data from the other side, and end for good.
 */
#ifndef OFPI_CONNECTION_H
#define OFPI_CONNECTION_H

#include "domain.h"
#include "ofipy/connect.h"

/* A request that a listener took. Owned by the listener, from the opening of an endpoint on by that one's connection. */
struct ofpi_connection_request {
    struct ofp_list node; /* in the listener's list; unlinked once it belongs to an endpoint */
    uint64_t handle;      /* names it in events; never used again in the domain */
    uint64_t request;     /* the provider's name */
    struct ofpi_passive *passive;
    size_t address_length;
    char address[];
};

struct ofpi_connection {
    struct ofpi_peer *peer;                  /* NULL until ofp_connect or ofp_accept; endpoint->peers owns it */
    struct ofpi_connection_request *request; /* to be accepted; NULL: none */
    struct ofp_list waiting;                 /* requests of ofp_connection_request, by their node */
    struct ofp_list leaving;                 /* requests of ofp_shutdown_request, likewise */
    bool made;                               /* it was up, whatever came later */
    bool ending;                             /* ofp_shutdown was called */
    int end_error;                           /* what those requests end with */
    int error;                               /* what it ended with, positive; 0 while it has not */
    char *text;                              /* why, owned; may be NULL */
    uint32_t data_length;                    /* of what the other side answered */
    void *data;                              /* owned; NULL: nothing */
};

/* passive.c: the request with this handle, NULL if there is none that is unanswered. */
struct ofpi_connection_request *ofpi_connection_request_find(struct ofpi_domain *domain, uint64_t handle);
/* It leaves its listener. */
void ofpi_connection_request_take(struct ofpi_connection_request *request);
int ofpi_connection_requested(struct ofp_passive *passive, uint64_t request, const void *address, size_t address_length,
                              const void *data, size_t length);

/* Of an endpoint that is being opened; `handle` as in ofp_endpoint_attr. -ENOENT: no such request. */
int ofpi_connection_open(struct ofpi_endpoint *endpoint, uint64_t handle);
/* The provider has opened the endpoint: the request is no longer the listener's. */
void ofpi_connection_opened(struct ofpi_endpoint *endpoint);
/* NULL-safe, after the peers were freed. */
void ofpi_connection_free(struct ofpi_endpoint *endpoint);

/* Check and start one operation of an endpoint without an address vector, whatever peer it names. */
int ofpi_connection_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
void ofpi_connection_answered(struct ofp_peer *peer, const void *data, size_t length);
/* The peer has changed its state. */
void ofpi_connection_up(struct ofpi_endpoint *endpoint);
/* `error`: what its operations end with; `reason`: what the provider said, 0 when it did what ofp_shutdown asked for. */
void ofpi_connection_lost(struct ofpi_endpoint *endpoint, bool was_up, int error, int reason, const char *text);
/* After its loss: end the receives that are posted, since nothing more will come. */
void ofpi_connection_end_receives(struct ofpi_endpoint *endpoint);
/* After ofp_shutdown: tell the provider once nothing is kept back here. */
void ofpi_connection_finish(struct ofpi_endpoint *endpoint);
/* Whether this side asked for the end. */
static inline bool ofpi_connection_ends_here(const struct ofpi_endpoint *endpoint)
{
    return endpoint->connection && endpoint->connection->ending;
}

#endif
