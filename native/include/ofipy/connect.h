/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of endpoints of type MSG (fi_cm(3)); the conventions are those of ofp.h.
 *
 * One side opens a listener and takes requests from its event queue; it opens an endpoint from each and accepts, or rejects the
 * request. The other side opens an endpoint and connects it. Each endpoint has one connection in its life. Receives may be
 * posted before; send-like operations from ofp_connect or ofp_accept on (before: -ENOTCONN), and wait until the connection is
 * there. The peer that records name is ignored.
 *
 * Python reads this file too: declarations, enums and plain integer #defines only.
 */
#ifndef OFIPY_CONNECT_H
#define OFIPY_CONNECT_H

#include "ofipy/ofp.h"

struct ofp_passive;

struct ofp_passive_attr {
    struct ofp_eq *eq;   /* gets the requests */
    const char *service; /* NULL: any address */
    uint32_t backlog;    /* requests unanswered at a time; what is beyond is refused. 0: default */
};
/* Bound to an address, but not listening. -EOPNOTSUPP where the domain's endpoints are not of type MSG. */
int ofp_passive_open(struct ofp_domain *domain, const struct ofp_passive_attr *attr, struct ofp_passive **passive,
                     char *text, size_t text_size);
/* Unanswered requests end refused; endpoints that were opened from requests live on. */
int ofp_passive_close(struct ofp_passive *passive);
int ofp_passive_retire(struct ofp_passive *passive);
void ofp_passive_free(struct ofp_passive *passive);
/* A second call does nothing. */
int ofp_passive_listen(struct ofp_passive *passive);
int ofp_passive_address(struct ofp_passive *passive, void *address, size_t *length);
uint32_t ofp_passive_id(struct ofp_passive *passive);
/* Of an unanswered request, by the handle of its event: who asks. -ENOENT: there is none. */
int ofp_passive_requester(struct ofp_passive *passive, uint64_t handle, void *address, size_t *length);
/* The other side's connection ends with ECONNREFUSED and these data. */
int ofp_passive_reject(struct ofp_passive *passive, uint64_t handle, const void *data, size_t length);

/*
 * Ask the listener at an address for a connection, with private data (-EMSGSIZE: longer than the info's max_private_data).
 * The outcome is an event of kind CONNECTED, with an error if it failed, and ofp_connection_status. -EISCONN: the
 * endpoint has or had a connection.
 */
int ofp_connect(struct ofp_endpoint *endpoint, const void *address, size_t address_length, const void *data,
                size_t length);
/* The same with the request that the endpoint was opened from. -EINVAL: from none. */
int ofp_accept(struct ofp_endpoint *endpoint, const void *data, size_t length);
/*
 * 0: connected; -EINPROGRESS: not yet; -ENOTCONN: not begun; another error: what the connection ended with, and why in `text`
 * where more is known. `data`: what the other side said when it answered; *length in: room, out: size.
 */
int ofp_connection_status(struct ofp_endpoint *endpoint, void *data, size_t *length, char *text, size_t text_size);
/*
 * A request that finishes when the outcome of ofp_connect or ofp_accept is known, with its error. A connection that was made
 * is made, even if it has ended by now.
 */
ofp_request_t ofp_connection_request(struct ofp_endpoint *endpoint);
/*
 * End the connection: what was posted still leaves, then the other side gets an event of kind SHUTDOWN. This side gets none;
 * what it posts from now on is refused with -ENOTCONN, and receives end as ECANCELED. No error where the other side has ended
 * it in order already; -ENOTCONN where it is lost, or was not there.
 */
int ofp_shutdown(struct ofp_endpoint *endpoint);
/*
 * After ofp_shutdown: a request that finishes when that is done, or with the error that came before it. -ENOTCONN: it was not
 * called.
 */
ofp_request_t ofp_shutdown_request(struct ofp_endpoint *endpoint);
/* Of the other side. -ENOTCONN: not known yet. */
int ofp_peer_address(struct ofp_endpoint *endpoint, void *address, size_t *length);

#endif
