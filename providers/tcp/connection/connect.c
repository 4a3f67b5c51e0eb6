/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that we open: TCP's handshake, our request, the answer, and another try where the peer asks at the same time. */
#include "connection/connect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection/connection.h"
#include "stream/socket.h"

#define PAUSE_FIRST (10 * TCP_MILLISECOND)
#define PAUSE_LONGEST (500 * TCP_MILLISECOND)

static void begin(struct tcp_connection *connection);
static void expired(struct ofp_timer *timer, uint64_t now);

/* ------------------------------------------------------------------------------------------------------------ timers */

/* What may keep a peer from answering that TCP has reached, or not even that. */
static void excuse(const struct tcp_connection *connection, char *text, size_t text_size)
{
    int lacking = tcp_descriptors_lacking();

    if (lacking)
        tcp_descriptors_describe(lacking, text, text_size);
    else if (connection->state != TCP_CONNECTING)
        snprintf(
            text, text_size,
            "its host took the connection: its program may make no progress, have no descriptors left (ulimit -n), "
            "or speak another protocol");
}

static void fail(struct tcp_connection *connection, int error)
{
    char text[OFP_TEXT_MAX];

    tcp_describe_refusal(connection->peer, error, text, sizeof(text));
    tcp_connection_end(connection, error, false, text);
}

static void give_up(struct tcp_connection *connection, int error)
{
    char text[OFP_TEXT_MAX], address[TCP_ADDRESS_TEXT], why[OFP_TEXT_MAX / 2] = "";

    if (ofpi_meet_is_shortage(error)) {
        fail(connection, error);
        return;
    }
    tcp_address_format(connection->peer->address, connection->peer->address_length, address, sizeof(address));
    if (error) {
        snprintf(text, sizeof(text), "%s refuses connections", address);
    } else {
        excuse(connection, why, sizeof(why));
        snprintf(text, sizeof(text), "%s did not answer within %g s (OFIPY_CONNECT_TIMEOUT)%s%s", address,
                 (double)connection->endpoint->domain->connect_ns / (double)TCP_SECOND, why[0] ? "; " : "", why);
    }
    tcp_connection_end(connection, error ? error : ETIMEDOUT, false, text);
}

static void set_timer(struct tcp_connection *connection, uint64_t deadline)
{
    struct ofp_timer *timer = &connection->meeting->timer;

    timer->deadline = deadline;
    timer->expired = expired;
    tcp_core->timer_start(connection->endpoint->domain->base, timer);
}

void tcp_connect_until_deadline(struct tcp_connection *connection)
{
    set_timer(connection, connection->meeting->backoff.deadline);
}

/* Our request cannot go on as it is; meeting->error says why. */
static void go_on(struct tcp_connection *connection, enum ofpi_meet_event event)
{
    struct tcp_meeting *meeting = connection->meeting;
    uint64_t now = tcp_core->now();
    unsigned acts =
        ofpi_meet_event(&tcp_peer_of(connection->peer)->meet, event, ofpi_backoff_lateness(&meeting->backoff, now));

    if (acts & OFPI_MEET_DO_LOSE) {
        give_up(connection, meeting->error);
    } else if (acts & OFPI_MEET_DO_CONNECT) {
        begin(connection);
    } else if (acts & OFPI_MEET_DO_WAIT) {
        if (connection->stream.fd >= 0)
            tcp_connection_hang_up(connection);
        connection->hangup = connection->blocked = false;
        set_timer(connection, ofpi_backoff_next(&meeting->backoff, now));
    }
}

static void expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    go_on(OFP_CONTAINER_OF(timer, struct tcp_meeting, timer)->connection, OFPI_MEET_TIMER);
}

/* ------------------------------------------------------------------------------------------------------- requesting */

int tcp_start_connect(const struct tcp_endpoint *endpoint, const void *address, socklen_t length, int *result)
{
    union tcp_address own = endpoint->address;
    int one = 1, error;
    int fd =
        tcp_descriptor_keep(socket(endpoint->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return -errno;
    tcp_socket_options(endpoint, fd, address, length);
    /* The peer knows us by this address. */
    tcp_address_set_port(&own, 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    if (bind(fd, &own.any, (socklen_t)tcp_address_length(&own)) != 0 ||
        (connect(fd, address, length) != 0 && errno != EINPROGRESS)) {
        error = -errno;
        tcp_descriptor_close(fd);
        return error;
    }
    *result = fd;
    return 0;
}

static const char *remedy(int error)
{
    return error == ECONNREFUSED ? "; start the peer first, or check its address" : "";
}

void tcp_describe_refusal(const struct ofp_peer *peer, int error, char *text, size_t text_size)
{
    char address[TCP_ADDRESS_TEXT] = "", why[OFP_TEXT_MAX / 2];

    tcp_address_format(peer->address, peer->address_length, address, sizeof(address));
    tcp_descriptors_describe(error, why, sizeof(why));
    snprintf(text, text_size, "cannot connect to %s: %s%s", address, why, remedy(error));
}

/* Long before the deadline, so that somebody may do something about it. */
static void warn_of_shortage(struct tcp_connection *connection, int error)
{
    char text[OFP_TEXT_MAX];

    if (connection->meeting->warned)
        return;
    connection->meeting->warned = true;
    tcp_describe_refusal(connection->peer, error, text, sizeof(text));
    tcp_core->log(OFP_LOG_WARNING, TCP_NAME, "endpoint %u %s; it tries again until OFIPY_CONNECT_TIMEOUT",
                  tcp_endpoint_id(connection->endpoint), text);
}

static void begin(struct tcp_connection *connection)
{
    struct tcp_meeting *meeting = connection->meeting;
    const struct ofp_peer *peer = connection->peer;
    int error =
        tcp_start_connect(connection->endpoint, peer->address, (socklen_t)peer->address_length, &connection->stream.fd);

    if (!error)
        error = tcp_connection_watch(connection);
    meeting->have = 0;
    meeting->error = -error;
    if (!error) {
        tcp_connect_until_deadline(connection);
    } else if (ofpi_meet_is_shortage(-error)) {
        warn_of_shortage(connection, -error);
        go_on(connection, OFPI_MEET_SHORTAGE);
    } else {
        fail(connection, -error);
    }
}

int tcp_connect_anew(struct ofp_peer *peer)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(peer->endpoint);
    struct tcp_connection *connection = tcp_connection_new(endpoint, -1, TCP_CONNECTING);

    if (!connection)
        return -ENOMEM;
    connection->peer = peer;
    connection->connector = true;
    connection->meeting->backoff =
        ofpi_backoff_begin(tcp_core->now() + endpoint->domain->connect_ns, PAUSE_FIRST, PAUSE_LONGEST);
    tcp_peer_of(peer)->connection = connection;
    begin(connection);
    return 0;
}

int tcp_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    (void)text;
    (void)text_size;
    ofpi_meet_event(&tcp_peer_of(peer)->meet, OFPI_MEET_CONNECT, 0);
    return tcp_connect_anew(peer);
}

void tcp_connected(struct tcp_connection *connection)
{
    socklen_t length = sizeof(int);
    int error = 0;

    getsockopt(connection->stream.fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (!error) {
        error = -connection->endpoint->ops->request(connection);
        /* Another event than the end of TCP's handshake. */
        if (error == EAGAIN || error == ENOTCONN)
            return;
    }
    if (error) {
        fail(connection, error);
        return;
    }
    connection->meeting->have = 0;
    tcp_connection_state(connection, TCP_REQUESTING);
}

void tcp_connect_later(struct tcp_connection *connection)
{
    tcp_connection_state(connection, TCP_CONNECTING);
    connection->meeting->error = ECONNREFUSED;
    go_on(connection, OFPI_MEET_LATER);
}

void tcp_connection_established(struct tcp_connection *connection)
{
    tcp_meeting_free(connection);
    tcp_connection_state(connection, TCP_UP);
    ofpi_meet_event(&tcp_peer_of(connection->peer)->meet, connection->connector ? OFPI_MEET_ACCEPT : OFPI_MEET_CONFIRM,
                    0);
    connection->peer->incarnation = connection->pid;
    ofp_peer_up(connection->peer);
    tcp_connection_ready(connection);
}
