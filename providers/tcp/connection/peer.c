/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers and their connections: reports to the core, and the ends of connections that the core or the manager decides. */
#include "connection/peer.h"

#include "connection/connection.h"
#include "stream/tls.h"

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

void tcp_peer_close(struct ofp_peer *peer)
{
    if (tcp_peer_of(peer)->connection)
        tcp_connection_discard(tcp_peer_of(peer)->connection);
}

void tcp_peer_report_loss(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    tcp_peer_close(peer);
    ofpi_meeting_report_loss(peer, end);
}

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
