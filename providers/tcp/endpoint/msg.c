/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MSG endpoints: one connection, which the program requests or accepts, with private data both ways, and an orderly
 * shutdown. With a key there are two requests: the first has no private data and only leads to the proof; the second one
 * counts.
 */
#include "endpoint/msg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection/auth.h"
#include "connection/connect.h"
#include "connection/connection.h"
#include "connection/control.h"
#include "connection/credit.h"
#include "connection/key.h"
#include "endpoint/common.h"
#include "connection/listen.h"
#include "connection/secure.h"
#include "stream/queue.h"
#include "stream/socket.h"

/* -------------------------------------------------------------------------------------------------------- connecting */

static int send_msg_request(struct tcp_connection *connection)
{
    const struct tcp_meeting *meeting = connection->meeting;

    /* Private data is sent only to a listener that has proved the key. */
    if (tcp_domain_has_key(connection->endpoint->domain) && !connection->proven)
        return tcp_control_send(connection, TCP_CONNREQ, NULL, 0);
    return tcp_control_send(connection, TCP_CONNREQ, meeting->private_data, meeting->private_length);
}

/*
 * Connect a bound socket. A socket that is bound to every address of both families needs IPv4 addresses in their IPv6
 * form.
 */
static int connect_bound_socket(int fd, const struct ofp_peer *peer)
{
    union tcp_address to = {0}, mapped = {.v6 = {.sin6_family = AF_INET6}};
    socklen_t size = sizeof(int);
    int family;

    memcpy(&to, peer->address, peer->address_length);
    family = to.any.sa_family;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
    if (family == to.any.sa_family)
        return connect(fd, &to.any, (socklen_t)peer->address_length);
    mapped.v6.sin6_port = to.v4.sin_port;
    mapped.v6.sin6_addr.s6_addr[10] = mapped.v6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(mapped.v6.sin6_addr.s6_addr + 12, &to.v4.sin_addr, sizeof(to.v4.sin_addr));
    return connect(fd, &mapped.any, sizeof(mapped.v6));
}

int tcp_msg_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(peer->endpoint);
    struct tcp_connection *connection;
    int error = 0;

    if (peer->private_data_length > TCP_PRIVATE_MAX)
        return -EINVAL;
    connection = tcp_connection_create(endpoint, endpoint->listener, TCP_CONNECTING);
    endpoint->listener = -1;
    if (!connection)
        return -ENOMEM;
    connection->peer = peer;
    connection->connector = true;
    tcp_peer_of(peer)->connection = connection;
    if (peer->private_data_length)
        memcpy(connection->meeting->private_data, peer->private_data, peer->private_data_length);
    connection->meeting->private_length = (uint16_t)peer->private_data_length;
    connection->meeting->deadline = tcp_core->now() + endpoint->domain->connect_ns;
    tcp_socket_set_options(endpoint, connection->stream.fd);
    if (connect_bound_socket(connection->stream.fd, peer) != 0 && errno != EINPROGRESS)
        error = -errno;
    tcp_socket_set_congestion_control(endpoint, connection->stream.fd, peer->address, (socklen_t)peer->address_length);
    if (!error)
        error = tcp_connection_watch(connection);
    if (!error) {
        tcp_connect_start_deadline(connection);
        return 0;
    }
    tcp_connect_error_describe(peer, -error, text, text_size);
    tcp_connection_discard(connection);
    return error;
}

/* Start the proof. Nothing that the listener has sent counts before it. */
static void start_msg_proof(struct tcp_connection *connection, const struct tcp_control *control)
{
    if (!tcp_control_can_prove(control)) {
        tcp_connection_end_for_key(connection, EACCES, tcp_key_find_place(connection));
    } else if (control->type == TCP_NACK) {
        tcp_connection_end(connection, ECONNREFUSED, false, "the listener refused");
    } else {
        tcp_address_parse(connection->peer->address, connection->peer->address_length, &connection->meeting->address);
        tcp_auth_start(connection);
    }
}

static void handle_msg_answer(struct tcp_connection *connection, const struct tcp_control *control,
                              const uint8_t *private_data)
{
    const struct tcp_endpoint *endpoint = connection->endpoint;

    if (control->type == TCP_CONNREQ) {
        tcp_connection_end_for_violation(connection, "a request in place of an answer");
        return;
    }
    connection->swapped = control->swapped;
    tcp_extension_accept(connection, control);
    if (tcp_domain_has_key(endpoint->domain) && !connection->proven) {
        if (!tcp_encryption_check_answer(connection, control, private_data))
            return;
        start_msg_proof(connection, control);
        return;
    }
    if (control->type == TCP_NACK && tcp_control_can_prove(control) && !connection->proven) {
        tcp_connection_end_for_key(connection, ECONNREFUSED, tcp_key_find_place(connection));
        return;
    }
    ofp_connection_answered(connection->peer, private_data, control->private_size);
    if (control->type == TCP_NACK) {
        tcp_connection_end(connection, ECONNREFUSED, false, "the request was rejected");
        return;
    }
    if (connection->extended && !connection->proven)
        tcp_hello_send(connection);
    tcp_peer_report_up(connection->peer);
}

int tcp_msg_accept(struct ofp_peer *peer, const void *data, size_t length)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(peer->endpoint);
    struct tcp_connection *connection = endpoint->request;
    int error;

    if (!connection)
        return -ECONNRESET;
    error = tcp_control_send(connection, TCP_CONNRESP, data, length);
    if (error)
        return error;
    endpoint->request = NULL;
    connection->peer = peer;
    tcp_peer_of(peer)->connection = connection;
    if (connection->extended && connection->proven)
        tcp_credit_grant_share(connection);
    else if (connection->extended)
        tcp_hello_send(connection);
    tcp_peer_report_up(peer);
    return 0;
}

/* The listener has proved the key: send the request that counts. */
static void handle_msg_proof(struct tcp_connection *connection)
{
    int error;

    OFP_CHECK(connection->state == TCP_PROVING && connection->connector);
    tcp_connection_set_state(connection, TCP_REQUESTING);
    error = send_msg_request(connection);
    if (error)
        tcp_connection_end(connection, -error, false, NULL);
}

/* --------------------------------------------------------------------------------------------------------------- end */

/* Whether none of our operations is in flight. */
static bool is_connection_idle(const struct tcp_connection *connection)
{
    return ofp_list_empty(&connection->out) && ofp_list_empty(&connection->acks) &&
           ofp_list_empty(&connection->reads) && !connection->announced;
}

bool tcp_msg_can_shut_down(const struct tcp_endpoint *endpoint)
{
    return endpoint->shutting_down && (!tcp_peer_of(endpoint->shutting_down)->connection ||
                                       is_connection_idle(tcp_peer_of(endpoint->shutting_down)->connection));
}

void tcp_msg_end_shutdown(struct tcp_endpoint *endpoint)
{
    struct ofp_peer *peer = endpoint->shutting_down;

    if (!tcp_msg_can_shut_down(endpoint))
        return;
    endpoint->shutting_down = NULL;
    ofp_peer_lost(peer, 0, false, "shut down here");
}

int tcp_msg_shutdown(struct ofp_peer *peer)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(peer->endpoint);

    endpoint->shutting_down = peer;
    tcp_endpoint_flush(endpoint->base);
    tcp_msg_end_shutdown(endpoint);
    return 0;
}

static void handle_msg_loss(struct tcp_connection *connection, int error)
{
    bool between = !connection->in.left && !connection->in.received;

    /* libfabric's MSG endpoints send no goodbye, so an end between messages is a shutdown. */
    if (connection->goodbye || (!error && !connection->extended && between))
        tcp_connection_end(connection, ESHUTDOWN, false, "the other side shut down");
    else if (connection->extended && (!error || error == ECONNRESET))
        tcp_connection_end(connection, OFP_EPEERLOST, true, "its endpoint is gone");
    else
        tcp_connection_end(connection, error ? error : ECONNRESET, false, NULL);
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static const struct tcp_connection_ops connection_ops = {
    .request = send_msg_request,
    .answered = handle_msg_answer,
    .proven = handle_msg_proof,
    .lost = handle_msg_loss,
};

/* Move the connection of a request from its listener to the new endpoint. After an error the listener still has it. */
static int move_request(struct tcp_endpoint *endpoint, struct tcp_connection *connection)
{
    struct tcp_endpoint *listener = connection->endpoint;
    int error;

    OFP_CHECK(connection->state == TCP_REQUESTED && endpoint->poller != listener->poller);
    if (!tcp_socket_get_address(connection->stream.fd, &endpoint->address))
        return -errno;
    connection->endpoint = endpoint;
    error = tcp_connection_watch(connection);
    if (error) {
        connection->endpoint = listener;
        return error;
    }
    epoll_ctl(listener->poller->epoll_fd, EPOLL_CTL_DEL, connection->stream.fd, NULL);
    ofp_list_remove(&connection->node);
    ofp_list_append(&endpoint->connections, &connection->node);
    /* The connection may be in the listener's lists after a proof. */
    if (ofp_list_linked(&connection->dirty)) {
        ofp_list_remove(&connection->dirty);
        tcp_connection_schedule_flush(connection);
    }
    if (ofp_list_linked(&connection->ready)) {
        ofp_list_remove(&connection->ready);
        tcp_connection_schedule_read(connection);
    }
    endpoint->request = connection;
    tcp_socket_set_traffic_class(endpoint, connection->stream.fd);
    return 0;
}

int tcp_msg_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    int error = tcp_endpoint_open_common(endpoint, base->domain, &connection_ops, true);

    if (error)
        return error;
    endpoint->base = base;
    endpoint->connects = true;
    tcp_info_get_address(base->info, &endpoint->address);
    error = tcp_encryption_check(endpoint->domain, text, text_size);
    if (!error)
        error = base->request ? move_request(endpoint, (struct tcp_connection *)(uintptr_t)base->request)
                              : tcp_listener_bind(endpoint, service, text, text_size);
    if (error)
        tcp_endpoint_close_common(endpoint);
    return error;
}
