/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/lent.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/pool.h"
#include "match/receiver.h"
#include "match/unexpected.h"
#include "object/peer.h"

void ofpi_inflight_open(struct ofpi_inflight_receives *inflight)
{
    ofpi_pool_init(&inflight->pool, sizeof(struct ofpi_inflight));
    ofp_list_init(&inflight->list);
}

void ofpi_inflight_close(struct ofpi_inflight_receives *inflight) { ofpi_pool_close(&inflight->pool); }

struct ofpi_inflight *ofpi_inflight_allocate(struct ofpi_inflight_receives *inflight,
                                             struct ofpi_receive_context *context)
{
    uint64_t id;
    struct ofpi_inflight *receive = ofpi_pool_allocate(&inflight->pool, &id);

    if (!receive)
        return NULL;
    receive->base.id = id;
    receive->context = context;
    ofp_list_append(&inflight->list, &receive->base.node);
    return receive;
}

void ofpi_inflight_bind_message(struct ofpi_inflight *receive, struct ofp_endpoint *endpoint,
                                const struct ofp_message *message)
{
    OFPI_CHECK(ofp_list_linked(&receive->base.node) && !ofp_list_linked(&receive->of_peer));
    receive->base.endpoint = receive->endpoint = endpoint;
    receive->base.message = *message;
    receive->peer = message->peer;
    if (message->peer)
        ofp_list_append(&((struct ofpi_peer *)message->peer)->receives, &receive->of_peer);
}

/* The provider cannot fill a layout: lend it a buffer. Without memory for that the message is dropped. */
static __attribute__((noinline)) void allocate_packed_memory(struct ofpi_inflight *receive)
{
    static struct ofp_region *const unregistered[1];

    receive->packs = true;
    receive->memory = (struct iovec){malloc(receive->base.length ? receive->base.length : 1), receive->base.length};
    if (!receive->memory.iov_base)
        receive->memory.iov_len = receive->base.length = 0;
    receive->base.iov = &receive->memory;
    receive->base.iov_count = 1;
    receive->base.regions = unregistered;
}

int ofpi_inflight_unpack(struct ofpi_inflight *receive, int error)
{
    if (!error && !receive->memory.iov_base)
        error = ENOMEM;
    if (!error)
        ofpi_receiver_write(&receive->receiver, 0, receive->memory.iov_base, receive->memory.iov_len);
    free(receive->memory.iov_base);
    receive->memory = (struct iovec){NULL, 0};
    return error;
}

void ofpi_inflight_set_receiver(struct ofpi_inflight *receive, struct ofp_endpoint *endpoint,
                                const struct ofp_message *message, const struct ofpi_receiver *receiver)
{
    ofpi_inflight_bind_message(receive, endpoint, message);
    if (receiver) {
        uint64_t room = receiver->memory.iov_len;

        receive->receiver = *receiver;
        receive->base.length = message->length < room ? message->length : room;
        receive->base.iov = ofpi_receiver_get_iov(&receive->receiver, &receive->base.iov_count);
        receive->base.regions = ofpi_receiver_get_regions(&receive->receiver);
        if (__builtin_expect(receive->base.iov_count == OFP_LAYOUT, 0) && !endpoint->ops->moves_layouts)
            allocate_packed_memory(receive);
    } else {
        receive->dropped = true;
    }
}

void ofpi_inflight_start(struct ofpi_inflight *receive, struct ofp_endpoint *endpoint,
                         const struct ofp_message *message, const struct ofpi_receiver *receiver)
{
    ofpi_inflight_set_receiver(receive, endpoint, message, receiver);
    endpoint->ops->receive_start(endpoint, &receive->base);
}

void ofpi_inflight_bind_unexpected(struct ofpi_inflight *receive, struct ofpi_unexpected *unexpected,
                                   struct ofp_endpoint *endpoint, const struct ofp_message *message)
{
    static struct ofp_region *const unregistered[1];

    OFPI_CHECK(!unexpected->announced && !unexpected->filling && !receive->unexpected);
    unexpected->filling = receive;
    receive->unexpected = unexpected;
    receive->memory = (struct iovec){ofpi_payload_of_unexpected(unexpected), message->length};
    ofpi_inflight_bind_message(receive, endpoint, message);
    receive->base.length = message->length;
    receive->base.iov = &receive->memory;
    receive->base.iov_count = 1;
    receive->base.regions =
        unexpected->borrowed ? ofpi_receiver_get_regions(&unexpected->payload.borrowed_from) : unregistered;
}

void ofpi_inflight_free(struct ofpi_inflight_receives *inflight, struct ofpi_inflight *receive)
{
    OFPI_CHECK(ofp_list_linked(&receive->base.node));
    ofp_list_remove(&receive->base.node);
    if (ofp_list_linked(&receive->of_peer))
        ofp_list_remove(&receive->of_peer);
    ofpi_pool_free(&inflight->pool, receive->base.id);
}
