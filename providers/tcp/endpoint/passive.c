/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners of connected endpoints. A listener is an endpoint without messages: it has a listening socket, and connections
 * until their request is read; from then on the request is the core's, until it is rejected or an endpoint is opened from it.
 */
#include "endpoint/passive.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "connection/auth.h"
#include "connection/connection.h"
#include "connection/control.h"
#include "connection/handshake.h"
#include "endpoint/common.h"
#include "connection/listen.h"
#include "connection/poller.h"

struct tcp_passive {
    struct tcp_endpoint host;
};

static struct tcp_endpoint *host_of(struct ofp_passive *passive)
{
    return &((struct tcp_passive *)passive->private)->host;
}

static void somebody_came(struct ofp_watch *watch, uint32_t events)
{
    struct tcp_poller *poller = OFP_CONTAINER_OF(watch, struct tcp_poller, watch);

    (void)events;
    tcp_poller_poll(poller);
    tcp_connections_free_dead(poller->listening);
}

/* The program hears of nobody of whom it is not known that both sides have the key, or that neither wants one. */
static void want_proof(struct tcp_connection *connection, const struct tcp_control *control)
{
    const struct tcp_endpoint *host = connection->endpoint;
    int error;

    if (!host->domain->key_length || !tcp_can_prove(control)) {
        tcp_key_warning(connection, tcp_key_place(connection));
        tcp_refuse(connection, NULL, 0);
        return;
    }
    error = tcp_send_control(connection, TCP_CONNRESP, NULL, 0);
    if (error)
        tcp_connection_end(connection, -error, false, NULL);
    else
        tcp_auth_begin(connection);
}

static void requested(struct tcp_connection *connection, const struct tcp_control *control, const uint8_t *private_data)
{
    struct tcp_endpoint *host = connection->endpoint;
    union tcp_address *address = &connection->meeting->address;
    socklen_t length = sizeof(*address);

    if (control->type != TCP_CONNREQ || getpeername(connection->stream.fd, &address->any, &length) != 0) {
        tcp_connection_violation(connection, "not a request for a connection");
        return;
    }
    tcp_address_clean(address);
    connection->swapped = control->swapped;
    tcp_control_agree(connection, control);
    if (!connection->proven && (host->domain->key_length || tcp_can_prove(control))) {
        want_proof(connection, control);
        return;
    }
    ofp_list_remove(&connection->unproven);
    host->unproven_count--;
    tcp_core->timer_stop(host->domain->base, &connection->meeting->timer);
    tcp_connection_state(connection, TCP_REQUESTED);
    if (tcp_core->connection_requested(host->passive, (uint64_t)(uintptr_t)connection, address,
                                       tcp_address_length(address), private_data, control->private_size) != 0)
        tcp_refuse(connection, NULL, 0);
}

/* Whatever it asked for before the proof is forgotten: it asks once more. */
static void proven(struct tcp_connection *connection)
{
    tcp_auth_prove(connection);
    connection->proven = true;
    tcp_connection_state(connection, TCP_ACCEPTED);
}

static const struct tcp_connection_ops connection_ops = {.requested = requested, .proven = proven};

static int passive_open(struct ofp_passive *passive, const char *service, char *text, size_t text_size)
{
    struct tcp_endpoint *host = host_of(passive);
    int error = tcp_common_open(host, passive->domain, &connection_ops, false);

    if (error)
        return error;
    host->passive = passive;
    tcp_info_address(passive->info, &host->address);
    error = tcp_bind(host, service, text, text_size);
    if (error)
        tcp_common_close(host);
    return error;
}

static int passive_name(struct ofp_passive *passive, void *address, size_t *length)
{
    const struct tcp_endpoint *host = host_of(passive);
    size_t room = *length;

    *length = tcp_address_length(&host->address);
    if (room < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &host->address, *length);
    return 0;
}

static int passive_listen(struct ofp_passive *passive, uint32_t backlog)
{
    struct tcp_endpoint *host = host_of(passive);
    int error = tcp_listen(host);

    (void)backlog;
    if (error)
        return error;
    host->poller->watch.ready = somebody_came;
    return tcp_poller_arm(host);
}

static int passive_reject(struct ofp_passive *passive, uint64_t request, const void *data, size_t length)
{
    (void)passive;
    tcp_refuse((struct tcp_connection *)(uintptr_t)request, data, length);
    return 0;
}

/* Whose request is not read whole is refused as far as it is a request. */
static void turn_away(struct tcp_connection *connection)
{
    struct tcp_control control;

    /* What has come and is not read would reset the connection, and take the answer with it. */
    tcp_handshake(connection);
    if (connection->state == TCP_OVER)
        return;
    if (connection->state == TCP_ACCEPTED && connection->meeting->have >= TCP_CONTROL_SIZE &&
        tcp_control_decode(connection->meeting->bytes, &control) == 0 && control.type == TCP_CONNREQ) {
        tcp_control_agree(connection, &control);
        tcp_refuse(connection, NULL, 0);
    } else {
        connection->stream.ops->shutdown(&connection->stream);
        tcp_connection_discard(connection);
    }
}

static void passive_close(struct ofp_passive *passive)
{
    struct tcp_endpoint *host = host_of(passive);

    /* Those too who wait in the kernel. */
    for (int i = 0; i < TCP_UNPROVEN_MAX / TCP_ACCEPT_BATCH && host->armed; i++)
        tcp_accept(host);
    while (!ofp_list_empty(&host->connections))
        turn_away(OFP_CONTAINER_OF(host->connections.next, struct tcp_connection, node));
    tcp_common_close(host);
}

const struct ofp_passive_ops tcp_passive_ops = {
    .size = sizeof(struct ofp_passive_ops),
    .passive_size = sizeof(struct tcp_passive),
    .open = passive_open,
    .name = passive_name,
    .listen = passive_listen,
    .reject = passive_reject,
    .close = passive_close,
};
