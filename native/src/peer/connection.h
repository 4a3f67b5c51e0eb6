/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of endpoints of type MSG. The domain's lock guards all.
 *
 * The peer behind a connection is a peer like any other (peer_state.c): posting, backlog, loss are those of peers. Here is what
 * only connections have: they are asked for, accepted or rejected, with data from the other side, and end for good.
 */
#ifndef OFPI_CONNECTION_H
#define OFPI_CONNECTION_H

#include "object/endpoint.h"
#include "ofipy/connect.h"

struct ofpi_connection_request;

struct ofpi_connection {
    struct ofpi_peer *peer;                  /* NULL until ofp_connect or ofp_accept; endpoint->peers owns it */
    struct ofpi_connection_request *request; /* to be accepted; NULL: none */
    struct ofp_list waiting;                 /* requests of ofp_connection_request, by their node */
    struct ofp_list leaving;                 /* requests of ofp_shutdown_request, likewise */
    bool accepted;                           /* the other side asked for it, and waits for the answer */
    bool made;                               /* it was up, whatever came later */
    bool ending;                             /* ofp_shutdown was called */
    int end_error;                           /* what those requests end with */
    int error;                               /* what it ended with, positive; 0 while it has not */
    char *text;                              /* why, owned; may be NULL */
    uint32_t data_length;                    /* of what the other side answered */
    void *data;                              /* owned; NULL: nothing */
};

/* Of an endpoint that is being opened; `handle` as in ofp_endpoint_attr. -ENOENT: no such request. */
int ofpi_connection_open(struct ofpi_endpoint *endpoint, uint64_t handle);
/* The provider has opened the endpoint: the request is no longer the listener's. */
void ofpi_connection_opened(struct ofpi_endpoint *endpoint);
/* NULL-safe, after the peers were freed. */
void ofpi_connection_free(struct ofpi_endpoint *endpoint);

/* It is asked for or stands, and nobody has called ofp_shutdown. */
bool ofpi_connection_can_post(const struct ofpi_connection *connection);
void ofpi_connection_answered(struct ofp_peer *peer, const void *data, size_t length);
/* The rows of struct ofpi_upper. */
void ofpi_connection_established(struct ofpi_endpoint *endpoint);
void ofpi_connection_lost(struct ofpi_endpoint *endpoint, bool was_up, int error, int reason, const char *text);
void ofpi_connection_end_receives(struct ofpi_endpoint *endpoint);
void ofpi_connection_shutdown(struct ofpi_endpoint *endpoint);
bool ofpi_connection_is_ending(const struct ofpi_endpoint *endpoint);

#endif
