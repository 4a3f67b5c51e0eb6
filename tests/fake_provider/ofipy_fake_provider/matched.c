/* SPDX-License-Identifier: BSD-3-Clause */
/* "fake" endpoints: the core matches. Messages are handed over whole, or stream, or are announced. */
#include <errno.h>

#include "fake.h"

static int matched_deliver(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct packet *packet)
{
    struct ofp_message message = fake_message(packet, peer);
    bool is_long = packet->length > fake_domain_of(endpoint)->eager_size;
    int result;

    if (packet->stage == PACKET_WHOLE && is_long && packet->only_delivery) {
        result = fake_stream_begin(endpoint, &message, packet);
        if (result != -ENOBUFS)
            return result;
    } else if (packet->stage == PACKET_WHOLE && (!packet->pending_id || packet->only_delivery)) {
        result = ofp_message_arrived(endpoint, &message, packet->payload);
        if (result == 0)
            fake_reply(endpoint, packet, 0);
        if (result != -EAGAIN)
            return result;
    }
    /* Too much unexpected payload, or only announced: the core still takes announcements. */
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

    OFP_LIST_EACH(node, following, &from->announced) {
        struct packet *packet = OFP_CONTAINER_OF(node, struct packet, node);

        if (packet->id != receive->message.provider_data[0])
            continue;
        ofp_list_remove(node);
        if (packet->stage == PACKET_ANNOUNCED && receive->length) {
            fake_pull(endpoint, receive, packet);
            return;
        }
        ofp_receive_write(receive, 0, packet->payload, receive->length);
        fake_reply(endpoint, packet, 0);
        ofp_receive_complete(receive, 0, 0);
        return;
    }
    ofp_receive_complete(receive, OFP_EPEERLOST, 0);
}

static int matched_progress(struct ofp_endpoint *endpoint)
{
    int handled = fake_streams_work(endpoint) + fake_progress(endpoint, matched_deliver);

    mailbox_set_full(((struct fake_endpoint *)endpoint->private)->mailbox, ofp_announce_only(endpoint));
    return handled;
}

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
    .internal_channel = true,
    .post = fake_send,
    .flush = fake_flush,
    .receive_start = matched_receive_start,
    .progress = matched_progress,
    .arm = fake_arm,
    .disarm = fake_disarm,
};
