/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probing after a stream has ended without a goodbye: did the peer end, or only the connection? The probe connects to
 * the address at which the peer listened (state PROBING, with a socket of its own).
 * - Refused: the process has ended. Its operations fail as for a lost peer.
 * - No answer, and the connection had ended by silence: the host is gone.
 * - No answer after a reset: unknown, since a firewall may drop packets. The connection alone is lost.
 *
 * A process that ends closes its sockets in no particular order, and forked children have copies for a moment. So the
 * kernel may accept the probe for a listener that is about to close. The probe's connection must stay open for
 * STABLE_TIME; if it is closed earlier, a second probe decides.
 */
#include "connection/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection/connect.h"
#include "connection/connection.h"
#include "connection/race.h"
#include "stream/socket.h"

#define ANSWER_TIMEOUT TCP_SECOND
/* How long the probe's connection must stay open to prove that the peer listens. */
#define STABLE_TIME (200 * TCP_MILLISECOND)

static bool is_silence(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EADDRNOTAVAIL;
}

/* Report the result. `answer`: 0 (the peer listens) or a positive errno. */
static void end_probe(struct tcp_connection *connection, int answer)
{
    int error = connection->meeting->error;
    char text[OFP_TEXT_MAX];

    OFP_CHECK(connection->state == TCP_PROBING);
    if (answer == ECONNREFUSED) {
        tcp_connection_end(connection, OFP_EPEERLOST, true, "the peer is gone");
    } else if (is_silence(error) && is_silence(answer)) {
        snprintf(text, sizeof(text), "the peer's host has not answered for %g s, and nobody answers there now",
                 connection->endpoint->domain->user_timeout_ms / 1000.0);
        tcp_connection_end(connection, error, true, text);
    } else {
        tcp_connection_end(connection, error, false, "the connection ended");
    }
}

static void probe_timer_expired(struct ofp_timer *timer, uint64_t now)
{
    const struct tcp_meeting *meeting = OFP_CONTAINER_OF(timer, struct tcp_meeting, timer);

    (void)now;
    end_probe(meeting->connection, meeting->answered ? 0 : ETIMEDOUT);
}

static void start_probe_timer(struct tcp_connection *connection, uint64_t time)
{
    struct ofp_timer *timer = &connection->meeting->timer;

    timer->deadline = tcp_core->now() + time;
    timer->expired = probe_timer_expired;
    tcp_core->timer_start(connection->endpoint->domain->base, timer);
}

static void start_probe_attempt(struct tcp_connection *connection)
{
    int error = tcp_connect_to_reached(connection);

    if (error)
        end_probe(connection, -error);
    else
        start_probe_timer(connection, ANSWER_TIMEOUT);
}

bool tcp_probe_start(struct tcp_connection *connection, int error)
{
    OFP_CHECK(connection->state == TCP_UP && !connection->meeting);
    connection->meeting = calloc(1, sizeof(*connection->meeting));
    if (!connection->meeting)
        return false;
    tcp_connection_close_socket(connection);
    /* The queue was for the old stream, not for the probe. */
    connection->shut = true;
    connection->meeting->connection = connection;
    connection->meeting->error = error;
    tcp_connection_set_state(connection, TCP_PROBING);
    if (ofp_list_linked(&connection->ready))
        ofp_list_remove(&connection->ready);
    start_probe_attempt(connection);
    return true;
}

static void retry_probe(struct tcp_connection *connection)
{
    struct tcp_meeting *meeting = connection->meeting;

    if (meeting->second_attempt) {
        end_probe(connection, 0);
        return;
    }
    tcp_connection_close_socket(connection);
    meeting->answered = false;
    meeting->second_attempt = true;
    start_probe_attempt(connection);
}

/* Retry if the peer has closed the probe's connection. The peer sends nothing on it. */
static void check_probe_closed(struct tcp_connection *connection)
{
    char byte;
    struct iovec iov = {&byte, 1};
    ssize_t result = connection->stream.ops->readv(&connection->stream, &iov, 1);

    if (result == 0 || (result < 0 && result != -EAGAIN))
        retry_probe(connection);
}

void tcp_probe_progress(struct tcp_connection *connection)
{
    int error;

    if (connection->meeting->answered) {
        check_probe_closed(connection);
        return;
    }
    error = tcp_socket_check_connect(connection->stream.fd);
    if (error == ECONNRESET || error == EPIPE) {
        retry_probe(connection);
    } else if (error && error != EAGAIN) {
        end_probe(connection, error);
    } else if (!error) {
        connection->meeting->answered = true;
        start_probe_timer(connection, STABLE_TIME);
        check_probe_closed(connection);
    }
}
