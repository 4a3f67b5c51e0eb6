/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection has ended without a goodbye. Whether its peer is gone, or only the connection, shows at the address where it
 * listened: who is refused there need not wait for anybody. Nor need who is not answered, if silence had ended the connection:
 * that is a host that has vanished. A reset with silence behind it says nothing, since something on the way may drop packets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp.h"

#define PATIENCE TCP_SECOND

static bool is_silence(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EADDRNOTAVAIL;
}

/* `answer`: 0 or a positive errno. */
static void learn(struct tcp_connection *connection, int answer)
{
    int error = connection->meeting->error;
    char text[OFP_TEXT_MAX];

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

static void no_answer(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    learn(OFP_CONTAINER_OF(timer, struct tcp_meeting, timer)->connection, ETIMEDOUT);
}

static void wait_for_answer(struct tcp_connection *connection)
{
    struct ofp_timer *timer = &connection->meeting->timer;

    timer->deadline = tcp_core->now() + PATIENCE;
    timer->expired = no_answer;
    tcp_core->timer_start(connection->endpoint->domain->base, timer);
}

void tcp_knock(struct tcp_connection *connection, int error)
{
    struct ofp_peer *peer = connection->peer;
    int failed;

    tcp_connection_hang_up(connection);
    connection->meeting = calloc(1, sizeof(*connection->meeting));
    if (!connection->meeting) {
        tcp_connection_end(connection, error, false, NULL);
        return;
    }
    connection->meeting->connection = connection;
    connection->meeting->error = error;
    tcp_connection_state(connection, TCP_KNOCKING);
    if (ofp_list_linked(&connection->ready))
        ofp_list_remove(&connection->ready);
    failed =
        tcp_start_connect(connection->endpoint, peer->address, (socklen_t)peer->address_length, &connection->stream.fd);
    if (!failed)
        failed = tcp_connection_watch(connection);
    if (failed)
        learn(connection, -failed);
    else
        wait_for_answer(connection);
}

void tcp_heard(struct tcp_connection *connection)
{
    socklen_t length = sizeof(int);
    struct sockaddr_storage peer;
    socklen_t peer_length = sizeof(peer);
    int error = 0;

    getsockopt(connection->stream.fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error || getpeername(connection->stream.fd, (struct sockaddr *)&peer, &peer_length) == 0)
        learn(connection, error);
}
