/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners of MSG endpoints. A listener is an endpoint without operations: it has a listening socket, and connections
 * in the states ACCEPTED and PROVING. A connection whose request is complete (REQUESTED) belongs to the core, until the
 * program rejects it or opens an endpoint from it.
 */
#include "endpoint/passive.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "connection/auth.h"
#include "connection/connection.h"
#include "connection/control.h"
#include "connection/handshake.h"
#include "connection/key.h"
#include "endpoint/common.h"
#include "connection/listen.h"
#include "connection/secure.h"
#include "connection/poller.h"
#include "stream/socket.h"

struct tcp_passive {
    struct tcp_endpoint host;
};

static struct tcp_endpoint *host_of_passive(struct ofp_passive *passive)
{
    return &((struct tcp_passive *)passive->private)->host;
}

static void listener_woken(struct ofp_watch *watch, uint32_t events)
{
    struct tcp_poller *poller = OFP_CONTAINER_OF(watch, struct tcp_poller, watch);

    (void)events;
    tcp_poller_poll(poller);
    tcp_connections_free_dead(poller->listening);
}

/* Demand a proof before the request is reported to the program. If only one side has a key, reject the request. */
static void request_proof(struct tcp_connection *connection, const struct tcp_control *control)
{
    const struct tcp_endpoint *host = connection->endpoint;
    int error;

    if (!tcp_domain_has_key(host->domain) || !tcp_control_can_prove(control)) {
        tcp_key_warn(connection, tcp_key_find_place(connection));
        tcp_request_reject(connection, NULL, 0);
        return;
    }
    error = tcp_control_send(connection, TCP_CONNRESP, NULL, 0);
    if (error)
        tcp_connection_end(connection, -error, false, NULL);
    else
        tcp_auth_start(connection);
}

static void handle_msg_request(struct tcp_connection *connection, const struct tcp_control *control,
                               const uint8_t *private_data)
{
    struct tcp_endpoint *host = connection->endpoint;
    union tcp_address *address = &connection->meeting->address;
    int refusal;

    if (control->type != TCP_CONNREQ || !tcp_socket_get_peer_address(connection->stream.fd, address)) {
        tcp_connection_end_for_violation(connection, "not a request for a connection");
        return;
    }
    connection->swapped = control->swapped;
    tcp_extension_accept(connection, control);
    refusal = tcp_encryption_find_refusal(connection, control);
    if (refusal != TCP_NOT_REFUSED) {
        tcp_request_reject_unencrypted(connection, refusal);
        return;
    }
    if (!connection->proven && (tcp_domain_has_key(host->domain) || tcp_control_can_prove(control))) {
        request_proof(connection, control);
        return;
    }
    tcp_connection_mark_known(connection);
    tcp_core->timer_stop(host->domain->base, &connection->meeting->timer);
    tcp_connection_set_state(connection, TCP_REQUESTED);
    if (tcp_core->connection_requested(host->passive, (uint64_t)(uintptr_t)connection, address,
                                       tcp_address_get_length(address), private_data, control->private_size) != 0)
        tcp_request_reject(connection, NULL, 0);
}

/* The request from before the proof does not count. The connector sends another one. */
static void handle_connector_proof(struct tcp_connection *connection)
{
    OFP_CHECK(connection->state == TCP_PROVING && !connection->connector);
    tcp_proof_send(connection);
    tcp_connection_set_state(connection, TCP_ACCEPTED);
}

static const struct tcp_connection_ops connection_ops = {.requested = handle_msg_request,
                                                         .proven = handle_connector_proof};

static int open_passive(struct ofp_passive *passive, const char *service, char *text, size_t text_size)
{
    struct tcp_endpoint *host = host_of_passive(passive);
    int error = tcp_endpoint_open_common(host, passive->domain, &connection_ops, false);

    if (error)
        return error;
    host->passive = passive;
    tcp_info_get_address(passive->info, &host->address);
    error = tcp_encryption_check(host->domain, text, text_size);
    if (!error)
        error = tcp_listener_bind(host, service, text, text_size);
    if (error)
        tcp_endpoint_close_common(host);
    return error;
}

static int get_passive_address(struct ofp_passive *passive, void *address, size_t *length)
{
    const struct tcp_endpoint *host = host_of_passive(passive);
    size_t space = *length;

    *length = tcp_address_get_length(&host->address);
    if (space < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &host->address, *length);
    return 0;
}

static int start_passive(struct ofp_passive *passive, uint32_t backlog)
{
    struct tcp_endpoint *host = host_of_passive(passive);
    int error = tcp_listener_start(host);

    (void)backlog;
    if (error)
        return error;
    host->poller->watch.ready = listener_woken;
    return tcp_poller_arm(host);
}

static int reject_msg_request(struct ofp_passive *passive, uint64_t request, const void *data, size_t length)
{
    (void)passive;
    tcp_request_reject((struct tcp_connection *)(uintptr_t)request, data, length);
    return 0;
}

/* Reject a connection whose request is not complete, with a NACK if the request has a valid header. */
static void reject_unread_request(struct tcp_connection *connection)
{
    struct tcp_control control;

    /*
     * Read all input first: closing a socket with unread input resets the connection, and the peer would lose the
     * answer.
     */
    tcp_handshake_progress(connection);
    if (connection->state == TCP_OVER)
        return;
    if (connection->state == TCP_ACCEPTED && connection->meeting->received >= TCP_CONTROL_SIZE &&
        tcp_control_decode(connection->meeting->bytes, &control) == 0 && control.type == TCP_CONNREQ) {
        tcp_extension_accept(connection, &control);
        tcp_request_reject(connection, NULL, 0);
    } else {
        connection->stream.ops->shutdown(&connection->stream);
        tcp_connection_discard(connection);
    }
}

static void close_passive(struct ofp_passive *passive)
{
    struct tcp_endpoint *host = host_of_passive(passive);

    /* Accept the connections that wait in the kernel, to reject them with an answer. */
    for (int i = 0; i < TCP_UNPROVEN_MAX / TCP_ACCEPT_BATCH && host->armed; i++)
        tcp_listener_accept(host);
    while (!ofp_list_empty(&host->connections))
        reject_unread_request(OFP_CONTAINER_OF(host->connections.next, struct tcp_connection, node));
    tcp_endpoint_close_common(host);
}

const struct ofp_passive_ops tcp_passive_ops = {
    .size = sizeof(struct ofp_passive_ops),
    .passive_size = sizeof(struct tcp_passive),
    .open = open_passive,
    .name = get_passive_address,
    .listen = start_passive,
    .reject = reject_msg_request,
    .close = close_passive,
};
