/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain services of an endpoint: the table that a provider calls through endpoint->services. */
#include "provider/services.h"

#include "base/page.h"
#include "match/receive_context.h"
#include "match/receive_stream.h"
#include "memory/remote.h"
#include "ofipy/services.h"
#include "operation/receive_offloaded.h"
#include "peer/connection.h"
#include "peer/peer_connect.h"
#include "peer/peer_find.h"
#include "peer/peer_state.h"
#include "peer/pending.h"
#include "progress/flush.h"
#include "progress/helper.h"

static struct ofpi_endpoint *endpoint_of_base(struct ofp_endpoint *endpoint)
{
    return (struct ofpi_endpoint *)endpoint;
}

static int match_whole_message(struct ofp_endpoint *endpoint, const struct ofp_message *message, const void *payload)
{
    return ofpi_message_arrived(endpoint_of_base(endpoint)->receive_context, endpoint, message, payload);
}

static int match_announced_message(struct ofp_endpoint *endpoint, const struct ofp_message *message)
{
    return ofpi_message_announced(endpoint_of_base(endpoint)->receive_context, endpoint, message);
}

static int match_begun_message(struct ofp_endpoint *endpoint, const struct ofp_message *message, enum ofp_room room,
                               struct ofp_receive **receive)
{
    return ofpi_message_begun(endpoint_of_base(endpoint)->receive_context, endpoint, message, room, receive);
}

static bool needs_announcement(struct ofp_endpoint *endpoint)
{
    return ofpi_receive_context_is_announce_only(endpoint_of_base(endpoint)->receive_context);
}

/* An endpoint over one transport finds its peers by address and ignores the identity. */
static struct ofp_peer *find_peer_by_identity(struct ofp_endpoint *endpoint, const uint8_t *identity,
                                              bool connects_only, const void *address, size_t length)
{
    struct ofp_peer *peer = ofpi_peer_find_by_address(endpoint, address, length);

    (void)identity;
    if (peer)
        peer->connects_only = connects_only;
    return peer;
}

static int accept_any_identity(struct ofp_peer *peer, const uint8_t *identity, char *text, size_t text_size)
{
    (void)peer, (void)identity, (void)text, (void)text_size;
    return 0;
}

static void count_dropped_message(struct ofp_endpoint *endpoint)
{
    endpoint_of_base(endpoint)->counts->messages_dropped++;
}

static void note_payload_move(struct ofp_receive *receive, enum ofp_moved how)
{
    ofpi_receive_set_protocol(receive, OFP_PROTOCOL_MAPPED + (enum ofp_protocol)how);
}

/* Over one transport a region handle contains the device's own key and offset. */
static bool copy_remote_segment(struct ofp_peer *peer, const struct ofp_remote_segment *remote,
                                struct ofp_remote_segment *there)
{
    (void)peer;
    *there = *remote;
    return true;
}

const struct ofp_services ofpi_services = {
    .size = sizeof(struct ofp_services),
    .peer_by_address = ofpi_peer_find_by_address,
    .peer_connecting = ofpi_peer_called,
    .peer_up = ofpi_peer_established,
    .peer_lost = ofpi_peer_lost,
    .connection_answered = ofpi_connection_answered,
    .transfer_retain = ofpi_transfer_retain,
    .pending_find = ofpi_pending_find,
    .transfer_complete = ofpi_transfer_complete,
    .offloaded_receive_complete = ofpi_offloaded_receive_complete,
    .message_arrived = match_whole_message,
    .message_begin = match_begun_message,
    .message_announced = match_announced_message,
    .announce_only = needs_announcement,
    .receive_write = ofpi_receive_write,
    .remote_access = ofpi_remote_access_acquire,
    .remote_event = ofpi_remote_event_deliver,
    .receive_find = ofpi_receive_find,
    .receive_complete = ofpi_receive_complete,
    .flush_later = ofpi_endpoint_flush_later,
    .peer_by_identity = find_peer_by_identity,
    .peer_identified = accept_any_identity,
    .source_find = ofpi_source_find,
    .message_dropped = count_dropped_message,
    .remote_at_device = copy_remote_segment,
    .look_soon = ofpi_progress_schedule,
    .peer_absent = ofpi_peer_absence_handle,
    .peer_deferred = ofpi_peer_deferral_handle,
    .payload_moved = note_payload_move,
};
