/* SPDX-License-Identifier: BSD-3-Clause */
/* "fake" endpoints: the core matches. Short messages are handed over whole, long ones are announced. */
#include <errno.h>

#include "fake.h"

static int matched_deliver(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct packet *packet)
{
    struct ofp_message message = fake_message(packet, peer);
    int result;

    if (!packet->pending_id || packet->only_delivery) {
        result = ofp_message_arrived(endpoint, &message, packet->payload);
        if (result == 0)
            packet_finish(packet, 0);
        if (result != -EAGAIN)
            return result;
        /* Too much unexpected payload: the core still takes announcements. */
    }
    /* Into the list first: receive_start may be called from within. */
    ofp_list_append(&((struct fake_peer *)peer->private)->announced, &packet->node);
    result = ofp_message_announced(endpoint, &message);
    if (result)
        ofp_list_remove(&packet->node);
    return result;
}

static void matched_receive_start(struct ofp_endpoint *endpoint, struct ofp_receive *receive)
{
    struct fake_peer *from = receive->message.peer->private;
    struct ofp_list *node, *following;

    (void)endpoint;
    OFP_LIST_EACH(node, following, &from->announced) {
        struct packet *packet = OFP_CONTAINER_OF(node, struct packet, node);

        if (packet->id != receive->message.provider_data[0])
            continue;
        ofp_list_remove(node);
        ofp_receive_write(receive, 0, packet->payload, receive->length);
        packet_finish(packet, 0);
        ofp_receive_complete(receive, 0, 0);
        return;
    }
    ofp_receive_complete(receive, OFP_EPEERLOST, 0);
}

static int matched_progress(struct ofp_endpoint *endpoint) { return fake_progress(endpoint, matched_deliver); }

const struct ofp_endpoint_ops fake_matched_ops = {
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
    .post = fake_send,
    .receive_start = matched_receive_start,
    .progress = matched_progress,
    .arm = fake_arm,
    .disarm = fake_disarm,
};
