/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "fake-offload" endpoints match receives themselves, with a plain list each for posted receives and unexpected
 * packets: the oldest that matches wins. So simple that it can serve as the model of what matching means.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "ofipy/iov.h"

#define PAUSE 20000 /* ns */

static struct fake_endpoint *private_of(struct ofp_endpoint *endpoint) { return endpoint->private; }

static bool matches(const struct ofp_pending *receive, const struct packet *packet)
{
    const struct ofp_operation *op = &receive->operation;
    const struct fake_address *source = &packet->source->address;

    if (packet->channel != ofp_operation_row(op->op)->channel)
        return false;
    if (packet->channel != OFP_CHANNEL_MESSAGE && (packet->tag ^ op->tag) & ~op->ignore)
        return false;
    return !receive->peer || memcmp(receive->peer->address, source, sizeof(*source)) == 0;
}

/* Of a multi-receive buffer, how many bytes are used; 0 otherwise. */
static uint64_t *used_of(struct ofp_pending *receive) { return &receive->provider_data[0]; }

static bool takes_many(const struct ofp_pending *receive) { return receive->operation.flags & OFP_MULTI_RECV; }

/* No message is cut because others came before it. */
static bool has_room(struct ofp_pending *receive, const struct packet *packet)
{
    return !takes_many(receive) || !*used_of(receive) || packet->length <= receive->transfer.length - *used_of(receive);
}

static void release(struct ofp_pending *receive)
{
    ofp_offloaded_receive_complete(receive, NULL, &(struct ofp_offloaded){0});
}

/* Copy what fits, finish both sides. True: the receive is a buffer that takes more. */
static bool receive_packet(struct ofp_endpoint *endpoint, struct ofp_pending *receive, struct packet *packet)
{
    struct ofp_message message = fake_message(packet, fake_sender(endpoint, packet));
    struct ofp_offloaded offloaded = {.buffer_offset = *used_of(receive)};
    uint64_t moved = ofp_iov_scatter(receive->transfer.iov, receive->transfer.iov_count, *used_of(receive),
                                     packet->payload, packet->length);
    uint64_t left;

    offloaded.error = moved < packet->length ? OFP_ETRUNC : 0;
    if (takes_many(receive)) {
        *used_of(receive) += moved;
        left = receive->transfer.length - *used_of(receive);
        offloaded.more = !offloaded.error && left && left >= endpoint->min_multi_recv;
    }
    ofp_offloaded_receive_complete(receive, &message, &offloaded);
    fake_reply(endpoint, packet, 0);
    return offloaded.more;
}

static void receives_remove(struct fake_endpoint *self, uint32_t place)
{
    self->receive_count--;
    memmove(&self->receives[place], &self->receives[place + 1],
            (self->receive_count - place) * sizeof(struct ofp_pending *));
}

static int receives_reserve(struct fake_endpoint *self)
{
    uint32_t capacity = self->receive_capacity ? self->receive_capacity * 2 : 64;
    struct ofp_pending **receives;

    if (self->receive_count < self->receive_capacity)
        return 0;
    receives = realloc(self->receives, capacity * sizeof(struct ofp_pending *));
    if (!receives)
        return -ENOMEM;
    self->receives = receives;
    self->receive_capacity = capacity;
    return 0;
}

static int offload_deliver(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct packet *packet)
{
    struct fake_endpoint *self = private_of(endpoint);
    uint32_t place = 0;

    (void)peer;
    while (place < self->receive_count) {
        struct ofp_pending *receive = self->receives[place];

        if (!matches(receive, packet)) {
            place++;
        } else if (!has_room(receive, packet)) {
            receives_remove(self, place);
            release(receive);
        } else {
            if (!receive_packet(endpoint, receive, packet))
                receives_remove(self, place);
            return 0;
        }
    }
    if (packet->pending_id && packet->only_delivery) {
        struct packet *kept = packet_copy(packet);

        if (!kept)
            return -ENOMEM;
        fake_reply(endpoint, packet, 0);
        packet = kept;
    }
    ofp_list_append(&self->unexpected, &packet->node);
    return 0;
}

/* Give a receive what it matches of the unexpected packets. True: it is still to be posted. */
static bool take_unexpected(struct ofp_endpoint *endpoint, struct ofp_pending *receive)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &private_of(endpoint)->unexpected) {
        struct packet *packet = OFP_CONTAINER_OF(node, struct packet, node);

        if (!matches(receive, packet))
            continue;
        if (!has_room(receive, packet)) {
            release(receive);
            return false;
        }
        ofp_list_remove(node);
        if (!receive_packet(endpoint, receive, packet))
            return false;
    }
    return true;
}

static int post_receive(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct fake_endpoint *self = private_of(endpoint);
    struct ofp_pending *receive;

    if (receives_reserve(self) != 0)
        return -ENOMEM;
    receive = ofp_transfer_retain(endpoint, peer, transfer);
    if (!receive)
        return -ENOMEM;
    if (take_unexpected(endpoint, receive))
        self->receives[self->receive_count++] = receive;
    return OFP_POST_PENDING;
}

/* Tell of the first unexpected packet that it matches, and leave that where it is. */
static int peek(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofp_pending *receive = ofp_transfer_retain(endpoint, peer, transfer);
    struct ofp_message message = {.source = OFP_PEER_UNKNOWN, .tag = transfer->op->tag};
    struct ofp_offloaded offloaded = {.error = ENOMSG};
    struct ofp_list *node, *following;

    if (!receive)
        return -ENOMEM;
    OFP_LIST_EACH(node, following, &private_of(endpoint)->unexpected) {
        struct packet *packet = OFP_CONTAINER_OF(node, struct packet, node);

        if (!matches(receive, packet))
            continue;
        message = fake_message(packet, fake_sender(endpoint, packet));
        offloaded.error = 0;
        break;
    }
    ofp_offloaded_receive_complete(receive, &message, &offloaded);
    return OFP_POST_PENDING;
}

static int offload_post(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    if (!ofp_operation_is(transfer->op->op, OFP_RECEIVES))
        return fake_send(endpoint, peer, transfer);
    if (transfer->op->flags & OFP_PEEK)
        return peek(endpoint, peer, transfer);
    return post_receive(endpoint, peer, transfer);
}

static int offload_cancel(struct ofp_endpoint *endpoint, struct ofp_pending *pending)
{
    struct fake_endpoint *self = private_of(endpoint);

    for (uint32_t i = 0; i < self->receive_count; i++) {
        if (self->receives[i] == pending) {
            receives_remove(self, i);
            return 0;
        }
    }
    return -ENOENT;
}

/* ------------------------------------------------------------------------------------------------------------ pauses */

static void pause_over(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    OFP_CONTAINER_OF(timer, struct fake_endpoint, pause)->paused = false;
}

/* As a device does that moderates its interrupts: after what came together the inbox rests. */
static int offload_progress(struct ofp_endpoint *endpoint)
{
    struct fake_endpoint *self = private_of(endpoint);
    int handled = fake_progress(endpoint, offload_deliver);

    if (handled && !self->paused) {
        self->paused = true;
        self->pause.expired = pause_over;
        self->pause.deadline = fake_core->now() + PAUSE;
        fake_core->timer_start(endpoint->domain, &self->pause);
    }
    return handled;
}

const struct ofp_endpoint_ops fake_offload_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct fake_endpoint),
    .peer_size = sizeof(struct fake_peer),
    .open = fake_open,
    .close = fake_close,
    .name = fake_name,
    .connect = fake_connect,
    .accept = fake_accept,
    .shutdown = fake_shutdown,
    .peer_down = fake_peer_down,
    .internal_channel = true,
    .post = offload_post,
    .flush = fake_flush,
    .cancel = offload_cancel,
    .progress = offload_progress,
    .arm = fake_arm,
    .disarm = fake_disarm,
};
