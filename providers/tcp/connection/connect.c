/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connecting side of RDM connection setup: TCP's handshake, our request, the answer, and further attempts.
 *
 * States: CONNECTING (a socket connects, or the back-off timer runs), REQUESTING (the request is sent), PROVING with a
 * key, UP.
 * A peer whose request crosses ours may defer ours. Then, and after a shortage of descriptors, the attempt ends, and the
 * core begins another one. The manager of native/meet decides about requests of the peer. A peer with several addresses
 * is tried by race.c. The caller holds the domain's lock; so do timers.
 */
#include "connection/connect.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection/connection.h"
#include "connection/key.h"
#include "connection/race.h"
#include "connection/secure.h"
#include "stream/queue.h"
#include "stream/socket.h"
#include "stream/tls.h"

static void connect_timer_expired(struct ofp_timer *timer, uint64_t now);

/* -------------------------------------------------------------------------------------------------- deadlines, failures */

/* Name possible reasons why a peer did not answer: a shortage here, or after TCP has connected, reasons there. */
static void describe_silence(const struct tcp_connection *connection, char *text, size_t text_size)
{
    int lacking = tcp_descriptors_probe_shortage();

    if (lacking)
        tcp_error_describe(lacking, text, text_size);
    else if (connection->state != TCP_CONNECTING)
        snprintf(
            text, text_size,
            "its host took the connection: its program may make no progress, have no descriptors left (ulimit -n), "
            "or speak another protocol");
}

static void fail_connect(struct tcp_connection *connection, int error)
{
    struct ofpi_meeting_end end;
    char text[OFP_TEXT_MAX];

    tcp_connect_error_describe(connection->peer, error, text, sizeof(text));
    /* A host refuses when no socket listens at the port. The bound socket of a connected endpoint has one attempt. */
    end = ofpi_meeting_end_build(error, text);
    end.deferred &= !connection->endpoint->connects;
    tcp_connection_end_as(connection, &end);
}

static void fail_at_deadline(struct tcp_connection *connection)
{
    char text[OFP_TEXT_MAX], address[TCP_ADDRESS_TEXT], why[OFP_TEXT_MAX / 2] = "";

    tcp_address_format(connection->peer->address, connection->peer->address_length, address, sizeof(address));
    describe_silence(connection, why, sizeof(why));
    snprintf(text, sizeof(text), "%s did not answer within %g s (OFIPY_CONNECT_TIMEOUT)%s%s", address,
             (double)connection->endpoint->domain->connect_ns / (double)TCP_SECOND, why[0] ? "; " : "", why);
    tcp_connection_end(connection, ETIMEDOUT, false, text);
}

static void start_connect_timer(struct tcp_connection *connection, uint64_t deadline)
{
    struct ofp_timer *timer = &connection->meeting->timer;

    timer->deadline = deadline;
    timer->expired = connect_timer_expired;
    tcp_core->timer_start(connection->endpoint->domain->base, timer);
}

void tcp_connect_start_deadline(struct tcp_connection *connection)
{
    start_connect_timer(connection, connection->meeting->deadline);
}

/* Wake up for the next address, or at the deadline if there is no further one. */
static void start_race_timer(struct tcp_connection *connection)
{
    const struct tcp_meeting *meeting = connection->meeting;
    uint64_t moment = tcp_core->now() + TCP_RACE_PAUSE;

    if (tcp_race_has_next(meeting->race) && moment < meeting->deadline)
        start_connect_timer(connection, moment);
    else
        tcp_connect_start_deadline(connection);
}

static void connect_timer_expired(struct ofp_timer *timer, uint64_t now)
{
    const struct tcp_meeting *meeting = OFP_CONTAINER_OF(timer, struct tcp_meeting, timer);
    struct tcp_connection *connection = meeting->connection;

    if (meeting->race && meeting->race->open && now < meeting->deadline) {
        tcp_race_start_next(connection);
        start_race_timer(connection);
    } else {
        fail_at_deadline(connection);
    }
}

/* ------------------------------------------------------------------------------------------------------- requesting */

static const char *describe_remedy(int error)
{
    return error == ECONNREFUSED ? "; start the peer first, or check its address" : "";
}

void tcp_connect_error_describe(const struct ofp_peer *peer, int error, char *text, size_t text_size)
{
    char address[TCP_ADDRESS_TEXT] = "", why[OFP_TEXT_MAX / 2], others[64] = "";

    tcp_address_format(peer->address, peer->address_length, address, sizeof(address));
    tcp_error_describe(error, why, sizeof(why));
    if (peer->other_count)
        snprintf(others, sizeof(others), ", nor to its %u other addresses", peer->other_count);
    snprintf(text, text_size, "cannot connect to %s%s: %s%s", address, others, why, describe_remedy(error));
}

int tcp_connect_to_reached(struct tcp_connection *connection)
{
    union tcp_address address;
    int error;

    tcp_peer_get_reached(connection->peer, &address);
    error = tcp_socket_connect(connection->endpoint, &address, (socklen_t)tcp_address_get_length(&address),
                               &connection->stream.fd);
    return error ? error : tcp_connection_watch(connection);
}

/*
 * "localhost" and the name of this host stand for the address of the endpoint's interface. A peer that was opened with
 * node="localhost" listens on the loopback interface alone, and the names should find it. The socket of a connected
 * endpoint has one attempt.
 */
static bool may_listen_at_loopback(const struct tcp_connection *connection)
{
    const struct tcp_endpoint *endpoint = connection->endpoint;
    union tcp_address address;

    tcp_peer_get_reached(connection->peer, &address);
    return !connection->meeting->race && !endpoint->connects && !tcp_address_is_loopback(&address) &&
           tcp_address_has_same_ip(&address, &endpoint->address);
}

/* Nobody listens at the peer's address. 0: an attempt at the loopback address is in progress. */
static int connect_to_loopback(struct tcp_connection *connection)
{
    if (!may_listen_at_loopback(connection))
        return -ECONNREFUSED;
    if (connection->stream.fd >= 0)
        tcp_connection_close_socket(connection);
    tcp_peer_of(connection->peer)->reached = TCP_REACHED_LOOPBACK;
    return tcp_connect_to_reached(connection);
}

static int connect_to_address(struct tcp_connection *connection)
{
    int error;

    tcp_peer_of(connection->peer)->reached = 0;
    error = tcp_connect_to_reached(connection);
    return error == -ECONNREFUSED && connect_to_loopback(connection) == 0 ? 0 : error;
}

/* 0, or a negative errno. */
static int start_attempt(struct tcp_connection *connection)
{
    struct tcp_meeting *meeting = connection->meeting;
    int error = meeting->race ? -tcp_race_start(connection) : connect_to_address(connection);

    meeting->received = 0;
    if (error)
        return error;
    if (meeting->race)
        start_race_timer(connection);
    else
        tcp_connect_start_deadline(connection);
    return 0;
}

int tcp_peer_start_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(peer->endpoint);
    struct tcp_connection *connection = tcp_connection_create(endpoint, -1, TCP_CONNECTING);
    int error = -ENOMEM;

    if (!connection)
        return error;
    connection->peer = peer;
    connection->connector = true;
    connection->meeting->deadline = tcp_core->now() + endpoint->domain->connect_ns;
    tcp_peer_of(peer)->connection = connection;
    if (!peer->other_count || (connection->meeting->race = tcp_race_create(peer)))
        error = start_attempt(connection);
    if (!error)
        return 0;
    tcp_connect_error_describe(peer, -error, text, text_size);
    tcp_connection_discard(connection);
    return error;
}

int tcp_peer_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    char address[TCP_ADDRESS_TEXT] = "";

    if (peer->connects_only) {
        tcp_address_format(peer->address, peer->address_length, address, sizeof(address));
        snprintf(text, text_size,
                 "%s does not listen to the network, and has not called; open it there with node=, or set "
                 "OFIPY_INTERFACE or OFIPY_AUTH_KEY_FILE",
                 address);
        return -EHOSTUNREACH;
    }
    return ofpi_meeting_start(tcp_endpoint_of(peer->endpoint)->ops->meeting, peer, text, text_size);
}

/*
 * Repeated connects to a free port of this host may get that port as their own, and so connect to themselves.
 * ECONNREFUSED, or 0.
 */
static int check_self_connect(int fd)
{
    union tcp_address here, there;
    bool same = tcp_socket_get_address(fd, &here) && tcp_socket_get_peer_address(fd, &there) &&
                tcp_address_compare(&here, &there) == 0;

    return same ? ECONNREFUSED : 0;
}

/* The kernel reports without an error that a connection was shut down on both sides. */
static bool has_hung_up(int fd)
{
    struct pollfd entry = {.fd = fd};

    return poll(&entry, 1, 0) == 1 && entry.revents & POLLHUP;
}

void tcp_socket_connected(struct tcp_connection *connection)
{
    socklen_t length = sizeof(int);
    int error = 0;

    OFP_CHECK(connection->state == TCP_CONNECTING && connection->connector);
    /* A race may have two ready sockets: the first event can end the attempt. */
    if (connection->stream.fd < 0)
        error = connection->meeting->race ? tcp_race_collect(connection) : EAGAIN;
    if (error == EAGAIN)
        return;
    if (!error)
        getsockopt(connection->stream.fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (!error)
        error = check_self_connect(connection->stream.fd);
    if (error == ECONNREFUSED && connect_to_loopback(connection) == 0)
        return;
    if (!error) {
        error = -tcp_key_choose(connection);
        if (!error && !tcp_encryption_start(connection))
            return;
        if (!error)
            error = -connection->endpoint->ops->request(connection);
        /* The event was not the end of TCP's handshake, unless the connection has ended since. */
        if (error == ENOTCONN && has_hung_up(connection->stream.fd))
            error = ECONNRESET;
        if (error == EAGAIN || error == ENOTCONN)
            return;
    }
    if (error) {
        if (!tcp_connection_end_failed_stream(connection, error))
            fail_connect(connection, error);
        return;
    }
    connection->meeting->received = 0;
    tcp_connect_start_deadline(connection);
    tcp_connection_set_state(connection, TCP_REQUESTING);
}

/* Return to the state before the first request. */
static void clear_attempt(struct tcp_connection *connection)
{
    if (connection->state != TCP_CONNECTING)
        tcp_connection_set_state(connection, TCP_CONNECTING);
    tcp_queue_discard(connection);
    connection->hello_received = false;
    connection->meeting->identified = false;
}

static void start_again(struct tcp_connection *connection)
{
    int error;

    clear_attempt(connection);
    tcp_connection_close_socket(connection);
    error = start_attempt(connection);
    if (error)
        fail_connect(connection, -error);
}

bool tcp_connect_retry_encrypted(struct tcp_connection *connection)
{
    /* The socket of a connected endpoint cannot be opened anew. */
    if (!tcp_encryption_is_host_bound(connection) || !connection->connector || connection->endpoint->connects)
        return false;
    connection->meeting->must_encrypt = true;
    start_again(connection);
    return true;
}

bool tcp_connect_retry_key(struct tcp_connection *connection)
{
    if (!connection->connector || connection->endpoint->connects || !tcp_key_advance(connection))
        return false;
    connection->meeting->must_encrypt = false;
    start_again(connection);
    return true;
}

void tcp_request_deferred(struct tcp_connection *connection)
{
    char text[OFP_TEXT_MAX], address[TCP_ADDRESS_TEXT];

    tcp_address_format(connection->peer->address, connection->peer->address_length, address, sizeof(address));
    snprintf(text, sizeof(text), "%s refuses connections", address);
    tcp_connection_end_as(connection,
                          &(struct ofpi_meeting_end){.error = ECONNREFUSED, .deferred = true, .text = text});
}

static int check_peer_identity(const struct tcp_connection *connection, char *text, size_t text_size)
{
    const uint8_t *identity = connection->meeting->identity;

    /* Our identity is right only if we have accepted this connection ourselves. */
    if (memcmp(identity, connection->endpoint->base->identity, OFP_IDENTITY_SIZE) != 0 ||
        tcp_peer_of(connection->peer)->inbound)
        return ofp_peer_identified(connection->peer, identity, text, text_size);
    snprintf(text, text_size, "who answered says that it is this endpoint itself");
    return -ECONNREFUSED;
}

/* Whether the peer that answered is the one that was meant. False: the connection is over, or tries another address. */
static bool accept_answering_peer(struct tcp_connection *connection)
{
    const struct tcp_meeting *meeting = connection->meeting;
    char text[OFP_TEXT_MAX] = "";
    int error = 0;

    if (connection->connector && meeting->identified)
        error = check_peer_identity(connection, text, sizeof(text));
    if (error && meeting->race && tcp_race_mark_wrong(meeting->race)) {
        start_again(connection);
    } else if (error) {
        tcp_connection_end(connection, -error, false, text[0] ? text : NULL);
    }
    return !error;
}

void tcp_request_accepted(struct tcp_connection *connection)
{
    if (accept_answering_peer(connection))
        ofpi_meeting_answered(connection->endpoint->ops->meeting, connection->peer, NULL);
}

void tcp_peer_report_up(struct ofp_peer *peer)
{
    struct tcp_connection *connection = tcp_peer_of(peer)->connection;

    OFP_CHECK(connection->peer == peer);
    tcp_connection_start_messages(connection);
    peer->incarnation = connection->incarnation;
    peer->proven = connection->proven;
    peer->cipher = tcp_tls_get_cipher(&connection->stream);
    ofp_peer_up(peer);
}
