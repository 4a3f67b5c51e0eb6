/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of endpoints of type MSG. The domain's lock guards all.
 *
 * The peer of a connection is an ordinary peer (peer_state.c): posting, backlog and loss work as for all peers. This
 * file has what only connections have: ofp_connect, acceptance or rejection with private data of the other side, and a
 * final end. An attempt is `waiting` until the outcome sets `made` or `error`; ofp_shutdown sets `ending`, and the end
 * sets `error`.
 */
#ifndef OFPI_CONNECTION_H
#define OFPI_CONNECTION_H

#include "object/endpoint.h"
#include "ofipy/connect.h"

struct ofpi_connection_request;

struct ofpi_connection {
    struct ofpi_peer *peer;                  /* NULL until ofp_connect or ofp_accept; endpoint->peers owns it */
    struct ofpi_connection_request *request; /* the request to accept; NULL: none */
    struct ofp_list waiting;                 /* requests of ofp_connection_request, by their node */
    struct ofp_list leaving;                 /* requests of ofp_shutdown_request, by their node */
    bool accepted;                           /* ofp_accept was called */
    bool made;                               /* the connection was up once, even if it has ended since */
    bool ending;                             /* ofp_shutdown was called */
    int end_error;                           /* the result of the requests in `leaving` */
    int error;                               /* the connection's final error, positive; 0 until it has ended */
    char *text;                              /* reason of the error, owned; may be NULL */
    uint32_t data_length;                    /* of `data` */
    void *data;                              /* private data of the other side's answer, owned; NULL: none */
};

/*
 * Create the connection of an endpoint that is being opened; `handle` is ofp_endpoint_attr.request. -ENOENT: no such
 * request.
 */
int ofpi_connection_open(struct ofpi_endpoint *endpoint, uint64_t handle);
/* The provider has opened the endpoint: the request passes from the listener to the connection. */
void ofpi_connection_opened(struct ofpi_endpoint *endpoint);
/* Call it after the peers were freed. The endpoint may have no connection. */
void ofpi_connection_free(struct ofpi_endpoint *endpoint);

/* The connection is being established or is up, and ofp_shutdown was not called. */
bool ofpi_connection_can_post(const struct ofpi_connection *connection);
void ofpi_connection_answered(struct ofp_peer *peer, const void *data, size_t length);
/* The rows of struct ofpi_upper. */
void ofpi_connection_established(struct ofpi_endpoint *endpoint);
void ofpi_connection_lost(struct ofpi_endpoint *endpoint, bool was_up, int error, int reason, const char *text);
void ofpi_connection_end_receives(struct ofpi_endpoint *endpoint);
void ofpi_connection_shutdown(struct ofpi_endpoint *endpoint);
bool ofpi_connection_is_ending(const struct ofpi_endpoint *endpoint);

#endif
