/* SPDX-License-Identifier: BSD-3-Clause */
/* What the core does for an endpoint: the table that providers reach through it. */
#include "connection.h"
#include "ofipy/services.h"
#include "receive_offloaded.h"

static struct ofpi_endpoint *endpoint_of(struct ofp_endpoint *endpoint) { return (struct ofpi_endpoint *)endpoint; }

static int message_arrived(struct ofp_endpoint *endpoint, const struct ofp_message *message, const void *payload)
{
    return ofpi_message_arrived(endpoint_of(endpoint)->receive_context, endpoint, message, payload);
}

static int message_announced(struct ofp_endpoint *endpoint, const struct ofp_message *message)
{
    return ofpi_message_announced(endpoint_of(endpoint)->receive_context, endpoint, message);
}

static int message_begin(struct ofp_endpoint *endpoint, const struct ofp_message *message, bool promised,
                         struct ofp_receive **receive)
{
    return ofpi_message_begin(endpoint_of(endpoint)->receive_context, endpoint, message, promised, receive);
}

static bool announce_only(struct ofp_endpoint *endpoint)
{
    return ofpi_announce_only(endpoint_of(endpoint)->receive_context);
}

const struct ofp_services ofpi_services = {
    .size = sizeof(struct ofp_services),
    .peer_by_address = ofpi_peer_by_address,
    .peer_connecting = ofpi_peer_connecting,
    .peer_up = ofpi_peer_up,
    .peer_lost = ofpi_peer_lost,
    .connection_answered = ofpi_connection_answered,
    .transfer_retain = ofpi_transfer_retain,
    .pending_find = ofpi_pending_find,
    .transfer_complete = ofpi_transfer_complete,
    .offloaded_receive_complete = ofpi_offloaded_receive_complete,
    .message_arrived = message_arrived,
    .message_begin = message_begin,
    .message_announced = message_announced,
    .announce_only = announce_only,
    .receive_write = ofpi_receive_write,
    .remote_access = ofpi_remote_access,
    .remote_event = ofpi_remote_event,
    .receive_find = ofpi_receive_find,
    .receive_complete = ofpi_receive_complete,
    .flush_later = ofpi_endpoint_flush_later,
};
