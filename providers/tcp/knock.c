/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection has ended without a goodbye. Whether its peer is gone, or only the connection, shows at the address where it
 * listened: who is refused there need not wait for anybody.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp.h"

#define PATIENCE TCP_SECOND

static void no_answer(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    tcp_connection_end(OFP_CONTAINER_OF(timer, struct tcp_meeting, timer)->connection, ECONNRESET, false,
                       "the connection ended");
}

static void wait_for_answer(struct tcp_connection *connection)
{
    struct ofp_timer *timer = &connection->meeting->timer;

    timer->deadline = tcp_core->now() + PATIENCE;
    timer->expired = no_answer;
    tcp_core->timer_start(connection->endpoint->domain->base, timer);
}

void tcp_knock(struct tcp_connection *connection)
{
    struct ofp_peer *peer = connection->peer;
    int error;

    connection->stream.ops->close(&connection->stream);
    connection->meeting = calloc(1, sizeof(*connection->meeting));
    if (!connection->meeting) {
        tcp_connection_end(connection, ECONNRESET, false, NULL);
        return;
    }
    connection->meeting->connection = connection;
    tcp_connection_state(connection, TCP_KNOCKING);
    if (ofp_list_linked(&connection->ready))
        ofp_list_remove(&connection->ready);
    error =
        tcp_start_connect(connection->endpoint, peer->address, (socklen_t)peer->address_length, &connection->stream.fd);
    if (!error)
        error = tcp_connection_watch(connection);
    if (error)
        tcp_connection_end(connection, error == -ECONNREFUSED ? OFP_EPEERLOST : ECONNRESET, error == -ECONNREFUSED,
                           "the connection ended");
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
    if (!error && getpeername(connection->stream.fd, (struct sockaddr *)&peer, &peer_length) != 0)
        return;
    tcp_connection_end(connection, error == ECONNREFUSED ? OFP_EPEERLOST : ECONNRESET, error == ECONNREFUSED,
                       error == ECONNREFUSED ? "the peer is gone" : "the connection ended");
}
