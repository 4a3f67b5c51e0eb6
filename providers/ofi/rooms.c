/* SPDX-License-Identifier: BSD-3-Clause */
#include "rooms.h"

#include <errno.h>
#include <stdlib.h>

/* The kernel's buffer of the socket holds what comes meanwhile: rooms are for what one look brings. */
#define ROOMS 64

static char *memory_of(const struct bridge_rooms *rooms, uint32_t number)
{
    return rooms->memory + number * (rooms->limit + 1);
}

static int post(const struct bridge_endpoint *self, uint32_t number)
{
    const struct bridge_rooms *rooms = self->rooms;
    struct iovec room = {memory_of(rooms, number), rooms->limit + 1};
    struct lf_msg msg = {.iov = &room, .iov_count = 1, .address = LF_ADDR_UNSPEC, .context = &rooms->contexts[number]};

    return -bridge_error((int)self->ep->msg->recvmsg(self->ep, &msg, LF_COMPLETION));
}

int bridge_rooms_open(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    size_t depth = bridge_domain_of(endpoint->domain)->info->rx_attr->size;
    struct bridge_rooms *rooms = calloc(1, sizeof(*rooms));
    int result = 0;

    if (!rooms)
        return -ENOMEM;
    self->rooms = rooms;
    rooms->count = depth < ROOMS ? (uint32_t)depth : ROOMS;
    rooms->limit = endpoint->info->max_msg_size;
    rooms->contexts = calloc(rooms->count, sizeof(*rooms->contexts));
    rooms->memory = calloc(rooms->count, rooms->limit + 1);
    if (!rooms->contexts || !rooms->memory)
        return -ENOMEM;
    for (uint32_t number = 0; number < rooms->count && !result; number++)
        result = post(self, number);
    return result;
}

void bridge_rooms_free(struct bridge_rooms *rooms)
{
    if (!rooms)
        return;
    free(rooms->contexts);
    free(rooms->memory);
    free(rooms);
}

/* Where libfabric's vector has an address that the core's has not any more, it is nobody's. */
static uint32_t source_of(struct ofp_endpoint *endpoint, uint64_t address)
{
    const struct ofp_peer *peer = bridge_peer_find(bridge_endpoint_of(endpoint), address);

    return peer ? ofp_source_find(endpoint, peer->address, peer->address_length) : OFP_PEER_UNKNOWN;
}

static void deliver(struct ofp_endpoint *endpoint, const struct lf_cq_entry *entry, uint64_t source,
                    const char *payload)
{
    struct ofp_message message = {
        .channel = OFP_CHANNEL_MESSAGE,
        .source = source_of(endpoint, source),
        .has_data = (entry->flags & LF_REMOTE_CQ_DATA) != 0,
        .data = entry->data,
        .length = entry->length,
    };

    /* Not all of a longer one is here; endpoints of its kind send none. */
    if (entry->length > bridge_endpoint_of(endpoint)->rooms->limit ||
        ofp_message_arrived(endpoint, &message, payload) != 0)
        ofp_message_dropped(endpoint);
}

void bridge_room_arrived(struct ofp_endpoint *endpoint, const struct lf_cq_entry *entry, uint64_t source, int error)
{
    const struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    uint32_t number = (uint32_t)((const struct lf_context2 *)entry->op_context - self->rooms->contexts);

    if (error)
        ofp_message_dropped(endpoint);
    else
        deliver(endpoint, entry, source, memory_of(self->rooms, number));
    error = -post(self, number);
    if (error)
        bridge_core->log(OFP_LOG_ERROR, BRIDGE_NAME, "%s: endpoint %u: libfabric takes no receive: %s",
                         endpoint->info->provider, endpoint->id,
                         bridge_domain_of(endpoint->domain)->library->strerror(error));
}
