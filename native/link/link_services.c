/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_services.h"

#include <errno.h>

#include "link/link_keys.h"
#include "link/link_peer.h"
#include "link/link_lane.h"
#include "base/check.h"

static struct ofp_endpoint *outer_of_endpoint(struct ofp_endpoint *inner) { return link_inner_of(inner)->outer; }

static struct ofp_peer *outer_of_peer(struct ofp_peer *inner) { return link_lane_of(inner)->outer; }

/* -------------------------------------------------------------------------------------------------------------- peers */

static struct ofp_peer *find_outer_peer(struct ofp_endpoint *inner, const void *address, size_t length)
{
    return link_peer_identify_caller(inner, NULL, false, address, length);
}

static void peer_connection_begun(struct ofp_peer *inner)
{
    struct ofp_peer *outer = outer_of_peer(inner);

    if (outer->state != OFP_PEER_CONNECTING && outer->state != OFP_PEER_UP)
        link_peer_update_address(outer);
    link_lane_connection_begun(inner);
}

/* Link has no endpoints of type MSG. */
static void connection_answered(struct ofp_peer *inner, const void *data, size_t length)
{
    (void)inner, (void)data, (void)length;
}

/* --------------------------------------------------------------------------------------------------------- operations */

static struct ofp_pending *transfer_retain(struct ofp_endpoint *inner, struct ofp_peer *peer,
                                           const struct ofp_transfer *transfer)
{
    struct ofp_endpoint *outer = outer_of_endpoint(inner);
    struct ofp_pending *pending = outer->services->transfer_retain(outer, outer_of_peer(peer), transfer);

    if (!pending)
        return NULL;
    pending->endpoint = inner;
    pending->peer = peer;
    return pending;
}

static struct ofp_pending *pending_find(struct ofp_peer *inner, uint64_t id)
{
    struct ofp_peer *outer = outer_of_peer(inner);
    struct ofp_pending *pending = outer->endpoint->services->pending_find(outer, id);

    return pending && pending->peer == inner ? pending : NULL;
}

static void transfer_complete(struct ofp_pending *pending, int error, int provider_error)
{
    outer_of_endpoint(pending->endpoint)->services->transfer_complete(pending, error, provider_error);
}

/* Providers with offloaded matching cannot be part of link. */
static void offloaded_receive_complete(struct ofp_pending *pending, const struct ofp_message *message,
                                       const struct ofp_offloaded *offloaded)
{
    (void)pending, (void)message, (void)offloaded;
}

/* ----------------------------------------------------------------------------------------------------------- messages */

/* Fill the members that the core reads of a message whose payload is at hand. */
static inline void fill_outer_message(struct ofp_message *seen, const struct ofp_message *message)
{
    struct ofp_peer *outer = outer_of_peer(message->peer);

    /* The peer must be UP before its first message is reported, and messages of an incarnation come by one lane. */
    if (__builtin_expect(!link_lane_of(message->peer)->heard, 0))
        link_lane_message_arrived(message->peer);
    /* Clearing the other members would cost as much as the rest of this path. */
    seen->peer = outer;
    seen->source = outer->index;
    seen->channel = message->channel;
    seen->has_data = message->has_data;
    seen->extras = message->extras;
    seen->protocol = message->protocol;
    seen->tag = message->tag;
    seen->data = message->data;
    seen->length = message->length;
}

static int lane_message_arrived(struct ofp_endpoint *inner, const struct ofp_message *message, const void *payload)
{
    struct ofp_endpoint *outer = outer_of_endpoint(inner);
    struct ofp_message seen;

    fill_outer_message(&seen, message);
    return outer->services->message_arrived(outer, &seen, payload);
}

/* The payload follows by the same lane. */
static void set_message_lane(struct ofp_message *seen, struct ofp_endpoint *inner, const struct ofp_message *message)
{
    __builtin_memcpy(seen->provider_data, message->provider_data, sizeof(seen->provider_data));
    seen->extras |= OFP_EXTRA_WAY;
    seen->spare[OFP_SPARE_WAY] = link_inner_of(inner)->number;
}

/* A receive belongs to the inner endpoint that brought its message, except while hooks see it. */
static void set_receive_owner(struct ofp_receive *receive, struct ofp_endpoint *inner, struct ofp_peer *peer)
{
    OFPI_CHECK(peer->endpoint == inner);
    receive->endpoint = inner;
    receive->message.peer = peer;
}

static int start_lane_message(struct ofp_endpoint *inner, const struct ofp_message *message, enum ofp_room bound,
                              struct ofp_receive **receive)
{
    struct ofp_endpoint *outer = outer_of_endpoint(inner);
    struct ofp_message seen;
    int result;

    fill_outer_message(&seen, message);
    set_message_lane(&seen, inner, message);
    result = outer->services->message_begin(outer, &seen, bound, receive);
    if (!result)
        set_receive_owner(*receive, inner, message->peer);
    return result;
}

static int lane_message_announced(struct ofp_endpoint *inner, const struct ofp_message *message)
{
    struct ofp_endpoint *outer = outer_of_endpoint(inner);
    struct ofp_message seen;

    fill_outer_message(&seen, message);
    set_message_lane(&seen, inner, message);
    return outer->services->message_announced(outer, &seen);
}

void link_receive_start(struct ofp_endpoint *outer, struct ofp_receive *receive)
{
    uint32_t number = (uint32_t)receive->message.spare[OFP_SPARE_WAY];
    struct ofp_endpoint *inner = &link_inner_find(outer, number)->base;

    OFPI_CHECK(number < link_endpoint_of(outer)->set->count && inner->id == outer->id);
    set_receive_owner(receive, inner, &link_lane_find(receive->message.peer, number)->base);
    inner->ops->receive_start(inner, receive);
}

static bool can_only_announce(struct ofp_endpoint *inner)
{
    struct ofp_endpoint *outer = outer_of_endpoint(inner);

    return outer->services->announce_only(outer);
}

/* Hooks inspect the receive, so it has the outer endpoint and peer during the call. */
static void write_lane_receive(struct ofp_receive *receive, uint64_t offset, const void *data, uint64_t length)
{
    struct ofp_endpoint *inner = receive->endpoint, *outer = outer_of_endpoint(inner);
    struct ofp_peer *peer = receive->message.peer;

    set_receive_owner(receive, outer, outer_of_peer(peer));
    outer->services->receive_write(receive, offset, data, length);
    set_receive_owner(receive, inner, peer);
}

static void lane_payload_moved(struct ofp_receive *receive, enum ofp_moved how)
{
    struct ofp_endpoint *inner = receive->endpoint, *outer = outer_of_endpoint(inner);
    struct ofp_peer *peer = receive->message.peer;

    set_receive_owner(receive, outer, outer_of_peer(peer));
    outer->services->payload_moved(receive, how);
    set_receive_owner(receive, inner, peer);
}

static struct ofp_receive *receive_find(struct ofp_peer *inner, uint64_t id)
{
    struct ofp_peer *outer = outer_of_peer(inner);
    struct ofp_receive *receive = outer->endpoint->services->receive_find(outer, id);

    return receive && receive->message.peer == inner ? receive : NULL;
}

static void receive_complete(struct ofp_receive *receive, int error, int provider_error)
{
    outer_of_endpoint(receive->endpoint)->services->receive_complete(receive, error, provider_error);
}

/* ------------------------------------------------------------------------------------------------------ remote memory */

static int resolve_outer_access(struct ofp_endpoint *inner, uint64_t key, uint64_t offset, uint64_t length,
                                uint32_t access, struct ofp_remote_access *result)
{
    struct ofp_endpoint *outer = outer_of_endpoint(inner);

    return outer->services->remote_access(outer, key, offset, length, access, result);
}

static void report_lane_event(struct ofp_endpoint *inner, struct ofp_peer *peer, struct ofp_region *region,
                              uint64_t flags, uint64_t data, uint64_t length)
{
    struct ofp_endpoint *outer = outer_of_endpoint(inner);

    outer->services->remote_event(outer, peer ? outer_of_peer(peer) : NULL, region, flags, data, length);
}

/* Operations name the core's key. Replace it by the key of the peer's device, if that is known. */
static bool find_device_key(struct ofp_peer *inner, const struct ofp_remote_segment *remote,
                            struct ofp_remote_segment *there)
{
    struct link_lane_key lane;

    if (!link_keys_find(remote->key, inner->endpoint->info->provider, &lane))
        return false;
    *there = (struct ofp_remote_segment){remote->offset + lane.remote_base, remote->length, lane.key};
    return true;
}

static void schedule_outer_flush(struct ofp_endpoint *inner)
{
    struct ofp_endpoint *outer = outer_of_endpoint(inner);

    outer->services->flush_later(outer);
}

static void schedule_outer_progress(struct ofp_endpoint *inner)
{
    struct ofp_endpoint *outer = outer_of_endpoint(inner);

    outer->services->look_soon(outer);
}

const struct ofp_services link_services = {
    .size = sizeof(struct ofp_services),
    .peer_by_address = find_outer_peer,
    .peer_connecting = peer_connection_begun,
    .peer_up = link_lane_connected,
    .peer_lost = link_lane_lost,
    .connection_answered = connection_answered,
    .transfer_retain = transfer_retain,
    .pending_find = pending_find,
    .transfer_complete = transfer_complete,
    .offloaded_receive_complete = offloaded_receive_complete,
    .message_arrived = lane_message_arrived,
    .message_begin = start_lane_message,
    .message_announced = lane_message_announced,
    .announce_only = can_only_announce,
    .receive_write = write_lane_receive,
    .receive_find = receive_find,
    .receive_complete = receive_complete,
    .payload_moved = lane_payload_moved,
    .remote_access = resolve_outer_access,
    .remote_event = report_lane_event,
    .flush_later = schedule_outer_flush,
    .peer_by_identity = link_peer_identify_caller,
    .peer_identified = link_peer_identified,
    .remote_at_device = find_device_key,
    .look_soon = schedule_outer_progress,
    .peer_absent = link_lane_absence_found,
    .peer_deferred = link_lane_deferral_found,
    .peer_identity_check = link_peer_identity_check,
};
