/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of endpoints of type MSG (fi_cm(3)); the conventions are those of ofp.h.
 *
 * One side opens a listener and reads requests from its event queue; for each request it opens an endpoint and accepts,
 * or it rejects the request. The other side opens an endpoint and connects it. Each endpoint has one connection in its
 * life. Receives may be posted before that. Send-like operations may be posted after ofp_connect or ofp_accept
 * (earlier: -ENOTCONN), and wait until the connection is established. The `peer` of operation records is ignored.
 *
 * Python reads this file too: declarations, enums and plain integer #defines only.
 */
#ifndef OFIPY_CONNECT_H
#define OFIPY_CONNECT_H

#include "ofipy/ofp.h"

struct ofp_passive;

struct ofp_passive_attr {
    struct ofp_eq *eq;   /* receives the connection requests */
    const char *service; /* NULL: any address */
    uint32_t backlog;    /* limit of unanswered requests; further ones are rejected. 0: default */
};
/*
 * Open a listener, bound to an address but not listening yet. -EOPNOTSUPP if the domain's endpoints are not of type
 * MSG.
 */
int ofp_passive_open(struct ofp_domain *domain, const struct ofp_passive_attr *attr, struct ofp_passive **passive,
                     char *text, size_t text_size);
/* Unanswered requests are rejected; endpoints that were opened from requests stay open. */
int ofp_passive_close(struct ofp_passive *passive);
int ofp_passive_retire(struct ofp_passive *passive);
void ofp_passive_free(struct ofp_passive *passive);
/* A second call does nothing. */
int ofp_passive_listen(struct ofp_passive *passive);
int ofp_passive_address(struct ofp_passive *passive, void *address, size_t *length);
uint32_t ofp_passive_id(struct ofp_passive *passive);
/* Address of the requester of an unanswered request, by the handle of the event. -ENOENT: there is no such request. */
int ofp_passive_requester(struct ofp_passive *passive, uint64_t handle, void *address, size_t *length);
/* The other side's connection ends with ECONNREFUSED and these data. */
int ofp_passive_reject(struct ofp_passive *passive, uint64_t handle, const void *data, size_t length);

/*
 * Request a connection of the listener at an address, with private data (-EMSGSIZE: longer than the info's
 * max_private_data). The outcome is an event of kind CONNECTED, with an error if it failed, and ofp_connection_status.
 * -EISCONN: the endpoint has or had a connection.
 */
int ofp_connect(struct ofp_endpoint *endpoint, const void *address, size_t address_length, const void *data,
                size_t length);
/*
 * Accept the request from which the endpoint was opened; the outcome as for ofp_connect. -EINVAL: it was opened from
 * none.
 */
int ofp_accept(struct ofp_endpoint *endpoint, const void *data, size_t length);
/*
 * 0: connected; -EINPROGRESS: not yet; -ENOTCONN: not begun; another error: the one with which the connection ended,
 * and the reason in `text` if it is known. `data`: the private data of the other side's answer; *length in: size of the
 * buffer, out: of the data.
 */
int ofp_connection_status(struct ofp_endpoint *endpoint, void *data, size_t *length, char *text, size_t text_size);
/*
 * A request that finishes when the outcome of ofp_connect or ofp_accept is known, with its error. Without error it says
 * that the connection was established, even if it has ended since.
 */
ofp_request_t ofp_connection_request(struct ofp_endpoint *endpoint);
/*
 * End the connection: posted operations are still sent, then the other side gets an event of kind SHUTDOWN. This side
 * gets none; its further posts are refused with -ENOTCONN, and its receives end with ECANCELED. 0 also if the other
 * side has already shut the connection down; -ENOTCONN if the connection is lost, or was not established.
 */
int ofp_shutdown(struct ofp_endpoint *endpoint);
/*
 * After ofp_shutdown: a request that finishes when the shutdown is complete, or with the error that prevented it.
 * -ENOTCONN: ofp_shutdown was not called.
 */
ofp_request_t ofp_shutdown_request(struct ofp_endpoint *endpoint);
/* Address of the other side. -ENOTCONN: not known yet. */
int ofp_peer_address(struct ofp_endpoint *endpoint, void *address, size_t *length);

/* Size of a buffer for the name of a cipher. */
#define OFP_CIPHER_MAX 64
/* Security of the connection to a peer. All members are zero while the peer is not connected. */
struct ofp_security {
    uint32_t proven;    /* 1: the peer has given the proof of enum ofp_peer_proof that the endpoint's info names */
    uint32_t encrypted; /* 1: the connection is encrypted */
    char cipher[OFP_CIPHER_MAX]; /* if encrypted */
};
/*
 * Query the connection to a peer of an endpoint of any type; one of type MSG has one peer, and ignores `peer`. If
 * messages of the peer arrive over another lane than those to it, only what is true of both lanes is reported.
 */
int ofp_peer_security(struct ofp_endpoint *endpoint, uint32_t peer, struct ofp_security *security);

#endif
