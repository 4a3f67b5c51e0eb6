/* SPDX-License-Identifier: BSD-3-Clause */
#include "buffers.h"

#include <errno.h>
#include <stdlib.h>

/*
 * The socket's kernel buffer contains messages that arrive meanwhile: these buffers are for those of one progress call.
 */
#define RECEIVE_BUFFERS 64

static char *memory_of_buffer(const struct bridge_receive_buffers *buffers, uint32_t number)
{
    return buffers->memory + number * (buffers->limit + 1);
}

static int post_buffer(const struct bridge_endpoint *self, uint32_t number)
{
    const struct bridge_receive_buffers *buffers = self->buffers;
    struct iovec buffer = {memory_of_buffer(buffers, number), buffers->limit + 1};
    struct lf_msg msg = {
        .iov = &buffer, .iov_count = 1, .address = LF_ADDR_UNSPEC, .context = &buffers->contexts[number]};

    return -bridge_error_convert((int)self->ep->msg->recvmsg(self->ep, &msg, LF_COMPLETION));
}

int bridge_receive_buffers_open(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    size_t depth = bridge_domain_of(endpoint->domain)->info->rx_attr->size;
    struct bridge_receive_buffers *buffers = calloc(1, sizeof(*buffers));
    int result = 0;

    if (!buffers)
        return -ENOMEM;
    self->buffers = buffers;
    buffers->count = depth < RECEIVE_BUFFERS ? (uint32_t)depth : RECEIVE_BUFFERS;
    buffers->limit = endpoint->info->max_msg_size;
    buffers->contexts = calloc(buffers->count, sizeof(*buffers->contexts));
    buffers->memory = calloc(buffers->count, buffers->limit + 1);
    if (!buffers->contexts || !buffers->memory)
        return -ENOMEM;
    for (uint32_t number = 0; number < buffers->count && !result; number++)
        result = post_buffer(self, number);
    return result;
}

void bridge_receive_buffers_free(struct bridge_receive_buffers *buffers)
{
    if (!buffers)
        return;
    free(buffers->contexts);
    free(buffers->memory);
    free(buffers);
}

/* An address of libfabric's vector that is no longer in the core's has no source. */
static uint32_t resolve_source(struct ofp_endpoint *endpoint, uint64_t address)
{
    const struct ofp_peer *peer = bridge_peer_find(bridge_endpoint_of(endpoint), address);

    return peer ? ofp_source_find(endpoint, peer->address, peer->address_length) : OFP_PEER_UNKNOWN;
}

static void deliver_datagram(struct ofp_endpoint *endpoint, const struct lf_cq_entry *entry, uint64_t source,
                             const char *payload)
{
    struct ofp_message message = {
        .channel = OFP_CHANNEL_MESSAGE,
        .source = resolve_source(endpoint, source),
        .has_data = (entry->flags & LF_REMOTE_CQ_DATA) != 0,
        .data = entry->data,
        .length = entry->length,
    };

    /* A longer message is truncated; endpoints of this provider send none. */
    if (entry->length > bridge_endpoint_of(endpoint)->buffers->limit ||
        ofp_message_arrived(endpoint, &message, payload) != 0)
        ofp_message_dropped(endpoint);
}

void bridge_datagram_arrived(struct ofp_endpoint *endpoint, const struct lf_cq_entry *entry, uint64_t source, int error)
{
    const struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    uint32_t number = (uint32_t)((const struct lf_context2 *)entry->op_context - self->buffers->contexts);

    OFP_CHECK(number < self->buffers->count);
    if (error)
        ofp_message_dropped(endpoint);
    else
        deliver_datagram(endpoint, entry, source, memory_of_buffer(self->buffers, number));
    error = -post_buffer(self, number);
    if (error)
        bridge_core->log(OFP_LOG_ERROR, BRIDGE_NAME, "%s: endpoint %u: libfabric takes no receive: %s",
                         endpoint->info->provider, endpoint->id,
                         bridge_domain_of(endpoint->domain)->library->strerror(error));
}
