/* SPDX-License-Identifier: BSD-3-Clause */
/* What the manager of native/meet does with a peer; the acts that answer requests are in accept.c, that of our request in connect.c. */
#include "connection/peer.h"

#include "connection/accept.h"
#include "connection/connect.h"
#include "connection/connection.h"
#include "connection/probe.h"
#include "stream/tls.h"

static struct ofpi_meeting *find_meeting(const struct ofp_peer *peer) { return &tcp_peer_of(peer)->met; }

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

static void close_connection(struct ofp_peer *peer)
{
    if (tcp_peer_of(peer)->connection)
        tcp_connection_discard(tcp_peer_of(peer)->connection);
}

void tcp_peer_lose(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    close_connection(peer);
    ofpi_meeting_report_loss(peer, end);
}

/* Nobody can be asked at a peer that only connects. The own endpoint is known. */
static bool probe_peer(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    struct tcp_peer *self = tcp_peer_of(peer);

    return !self->inbound && !peer->connects_only && !self->connection->endpoint->closing &&
           tcp_probe_start(self->connection, end->error);
}

/* Without `drain`: reading ends where the connection does, so no fact UNREAD is ever reported. */
const struct ofpi_meeting_ops tcp_meeting_ops = {
    .find = find_meeting,
    .dial = tcp_peer_start_connect,
    .accept = tcp_request_accept,
    .refuse = tcp_request_refuse,
    .close = close_connection,
    .lose = tcp_peer_lose,
    .probe = probe_peer,
    .use = tcp_peer_report_up,
};

void tcp_peer_disconnect(struct ofp_peer *peer)
{
    struct tcp_peer *self = tcp_peer_of(peer);

    tcp_endpoint_of(peer->endpoint)->shutting_down = NULL;
    if (self->inbound)
        tcp_connection_discard(self->inbound);
    if (self->connection)
        tcp_connection_start_leaving(self->connection);
    self->connection = self->inbound = NULL;
    self->met.state = OFPI_MEET_IDLE;
}
