/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_services.h"

#include <errno.h>

#include "link/link_keys.h"
#include "link/link_peer.h"
#include "link/link_way.h"

static struct ofp_endpoint *outer_of(struct ofp_endpoint *inner) { return link_inner_of(inner)->outer; }

static struct ofp_peer *outer_peer(struct ofp_peer *inner) { return link_way_of(inner)->outer; }

/* -------------------------------------------------------------------------------------------------------------- peers */

static struct ofp_peer *peer_by_address(struct ofp_endpoint *inner, const void *address, size_t length)
{
    return link_peer_calls(inner, NULL, false, address, length);
}

static void peer_connecting(struct ofp_peer *inner)
{
    struct ofp_peer *outer = outer_peer(inner);

    if (outer->state != OFP_PEER_CONNECTING && outer->state != OFP_PEER_UP)
        link_peer_refresh(outer);
    link_way_connecting(inner);
}

/* Endpoints of type MSG are no part of link. */
static void connection_answered(struct ofp_peer *inner, const void *data, size_t length)
{
    (void)inner, (void)data, (void)length;
}

/* --------------------------------------------------------------------------------------------------------- operations */

static struct ofp_pending *transfer_retain(struct ofp_endpoint *inner, struct ofp_peer *peer,
                                           const struct ofp_transfer *transfer)
{
    struct ofp_endpoint *outer = outer_of(inner);
    struct ofp_pending *pending = outer->services->transfer_retain(outer, outer_peer(peer), transfer);

    if (!pending)
        return NULL;
    pending->endpoint = inner;
    pending->peer = peer;
    return pending;
}

static struct ofp_pending *pending_find(struct ofp_peer *inner, uint64_t id)
{
    struct ofp_peer *outer = outer_peer(inner);
    struct ofp_pending *pending = outer->endpoint->services->pending_find(outer, id);

    return pending && pending->peer == inner ? pending : NULL;
}

static void transfer_complete(struct ofp_pending *pending, int error, int provider_error)
{
    outer_of(pending->endpoint)->services->transfer_complete(pending, error, provider_error);
}

/* Those that match messages themselves are no part either. */
static void offloaded_receive_complete(struct ofp_pending *pending, const struct ofp_message *message,
                                       const struct ofp_offloaded *offloaded)
{
    (void)pending, (void)message, (void)offloaded;
}

/* ----------------------------------------------------------------------------------------------------------- messages */

/* As the core is to see a message whose payload is at hand: all that it looks at of such. */
static inline void see(struct ofp_message *seen, const struct ofp_message *message)
{
    struct ofp_peer *outer = outer_peer(message->peer);

    /* The core hears of a peer before it hears of its messages. */
    if (__builtin_expect(outer->state != OFP_PEER_UP, 0))
        link_way_heard(message->peer);
    /* Not the rest: to clear it would cost as much as the whole way through here. */
    seen->peer = outer;
    seen->source = outer->index;
    seen->channel = message->channel;
    seen->has_data = message->has_data;
    seen->extras = 0;
    seen->tag = message->tag;
    seen->data = message->data;
    seen->length = message->length;
}

static int message_arrived(struct ofp_endpoint *inner, const struct ofp_message *message, const void *payload)
{
    struct ofp_endpoint *outer = outer_of(inner);
    struct ofp_message seen;

    see(&seen, message);
    return outer->services->message_arrived(outer, &seen, payload);
}

/* Its payload comes later, by the same way. */
static void name_way(struct ofp_message *seen, struct ofp_endpoint *inner, const struct ofp_message *message)
{
    __builtin_memcpy(seen->provider_data, message->provider_data, sizeof(seen->provider_data));
    seen->extras = OFP_EXTRA_WAY;
    seen->spare[OFP_SPARE_WAY] = link_inner_of(inner)->number;
}

/* A receive goes back to the provider that brought its message. */
static void lend(struct ofp_receive *receive, struct ofp_endpoint *inner, struct ofp_peer *peer)
{
    receive->endpoint = inner;
    receive->message.peer = peer;
}

static int message_begin(struct ofp_endpoint *inner, const struct ofp_message *message, enum ofp_room room,
                         struct ofp_receive **receive)
{
    struct ofp_endpoint *outer = outer_of(inner);
    struct ofp_message seen;
    int result;

    see(&seen, message);
    name_way(&seen, inner, message);
    result = outer->services->message_begin(outer, &seen, room, receive);
    if (!result)
        lend(*receive, inner, message->peer);
    return result;
}

static int message_announced(struct ofp_endpoint *inner, const struct ofp_message *message)
{
    struct ofp_endpoint *outer = outer_of(inner);
    struct ofp_message seen;

    see(&seen, message);
    name_way(&seen, inner, message);
    return outer->services->message_announced(outer, &seen);
}

void link_receive_start(struct ofp_endpoint *outer, struct ofp_receive *receive)
{
    uint32_t number = (uint32_t)receive->message.spare[OFP_SPARE_WAY];
    struct ofp_endpoint *inner = &link_inner_at(outer, number)->base;

    lend(receive, inner, &link_way_at(receive->message.peer, number)->base);
    inner->ops->receive_start(inner, receive);
}

static bool announce_only(struct ofp_endpoint *inner)
{
    struct ofp_endpoint *outer = outer_of(inner);

    return outer->services->announce_only(outer);
}

/* Hooks look at the receive. */
static void receive_write(struct ofp_receive *receive, uint64_t offset, const void *data, uint64_t length)
{
    struct ofp_endpoint *inner = receive->endpoint, *outer = outer_of(inner);
    struct ofp_peer *peer = receive->message.peer;

    lend(receive, outer, outer_peer(peer));
    outer->services->receive_write(receive, offset, data, length);
    lend(receive, inner, peer);
}

static void payload_moved(struct ofp_receive *receive, enum ofp_moved how)
{
    struct ofp_endpoint *inner = receive->endpoint, *outer = outer_of(inner);
    struct ofp_peer *peer = receive->message.peer;

    lend(receive, outer, outer_peer(peer));
    outer->services->payload_moved(receive, how);
    lend(receive, inner, peer);
}

static struct ofp_receive *receive_find(struct ofp_peer *inner, uint64_t id)
{
    struct ofp_peer *outer = outer_peer(inner);
    struct ofp_receive *receive = outer->endpoint->services->receive_find(outer, id);

    return receive && receive->message.peer == inner ? receive : NULL;
}

static void receive_complete(struct ofp_receive *receive, int error, int provider_error)
{
    outer_of(receive->endpoint)->services->receive_complete(receive, error, provider_error);
}

/* ------------------------------------------------------------------------------------------------------ remote memory */

static int remote_access(struct ofp_endpoint *inner, uint64_t key, uint64_t offset, uint64_t length, uint32_t access,
                         struct ofp_remote_access *result)
{
    struct ofp_endpoint *outer = outer_of(inner);

    return outer->services->remote_access(outer, key, offset, length, access, result);
}

static void remote_event(struct ofp_endpoint *inner, struct ofp_peer *peer, struct ofp_region *region, uint64_t flags,
                         uint64_t data, uint64_t length)
{
    struct ofp_endpoint *outer = outer_of(inner);

    outer->services->remote_event(outer, peer ? outer_peer(peer) : NULL, region, flags, data, length);
}

/* Handles of link say what its core is to be asked; what a device calls it came along with those that devices know. */
static bool remote_at_device(struct ofp_peer *inner, const struct ofp_remote_segment *remote,
                             struct ofp_remote_segment *there)
{
    struct link_way_key way;

    if (!link_keys_find(remote->key, inner->endpoint->info->provider, &way))
        return false;
    *there = (struct ofp_remote_segment){remote->offset + way.remote_base, remote->length, way.key};
    return true;
}

static void flush_later(struct ofp_endpoint *inner)
{
    struct ofp_endpoint *outer = outer_of(inner);

    outer->services->flush_later(outer);
}

static void look_soon(struct ofp_endpoint *inner)
{
    struct ofp_endpoint *outer = outer_of(inner);

    outer->services->look_soon(outer);
}

const struct ofp_services link_services = {
    .size = sizeof(struct ofp_services),
    .peer_by_address = peer_by_address,
    .peer_connecting = peer_connecting,
    .peer_up = link_way_up,
    .peer_lost = link_way_lost,
    .connection_answered = connection_answered,
    .transfer_retain = transfer_retain,
    .pending_find = pending_find,
    .transfer_complete = transfer_complete,
    .offloaded_receive_complete = offloaded_receive_complete,
    .message_arrived = message_arrived,
    .message_begin = message_begin,
    .message_announced = message_announced,
    .announce_only = announce_only,
    .receive_write = receive_write,
    .receive_find = receive_find,
    .receive_complete = receive_complete,
    .payload_moved = payload_moved,
    .remote_access = remote_access,
    .remote_event = remote_event,
    .flush_later = flush_later,
    .peer_by_identity = link_peer_calls,
    .peer_identified = link_peer_answers,
    .remote_at_device = remote_at_device,
    .look_soon = look_soon,
    .peer_absent = link_way_absent,
};
