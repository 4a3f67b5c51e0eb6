/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload that comes behind the beginning of its message. Of a long message that its sender wants delivered, receive or not,
 * each call of progress moves one piece. One whose sender waits for the match, and each while the target has no room, stays
 * with its sender until a receive has matched: the announcement goes back as a question, and the answer names the receive.
 */
#include <errno.h>

#include "fake.h"

#define PIECE 4096 /* bytes that one call of progress moves of one message */

static struct fake_endpoint *private_of(struct ofp_endpoint *endpoint) { return endpoint->private; }

/* ---------------------------------------------------------------------------------------------------------- streams */

int fake_stream_begin(struct ofp_endpoint *endpoint, const struct ofp_message *message, struct packet *packet)
{
    struct ofp_receive *receive;
    int result = ofp_message_begin(endpoint, message, OFP_ROOM_UNEXPECTED, &receive);

    if (result)
        return result;
    packet->receive_id = receive->id;
    packet->moved = 0;
    ofp_list_append(&((struct fake_peer *)message->peer->private)->streams, &packet->node);
    private_of(endpoint)->streaming++;
    return 0;
}

static void stream_end(struct ofp_endpoint *endpoint, struct packet *packet, int error)
{
    ofp_list_remove(&packet->node);
    private_of(endpoint)->streaming--;
    fake_reply(endpoint, packet, error);
}

static void stream_piece(struct fake_peer *from, struct packet *packet)
{
    struct ofp_endpoint *endpoint = from->peer->endpoint;
    struct ofp_receive *receive = ofp_receive_find(from->peer, packet->receive_id);
    uint64_t piece;

    if (!receive) {
        stream_end(endpoint, packet, ECANCELED);
        return;
    }
    piece = receive->length - packet->moved < PIECE ? receive->length - packet->moved : PIECE;
    ofp_receive_write(receive, packet->moved, packet->payload + packet->moved, piece);
    packet->moved += piece;
    if (packet->moved < receive->length)
        return;
    ofp_receive_complete(receive, 0, 0);
    stream_end(endpoint, packet, 0);
}

int fake_streams_work(struct ofp_endpoint *endpoint)
{
    struct fake_endpoint *self = private_of(endpoint);
    struct ofp_list *peer, *next_peer, *node, *following;
    int moved = 0;

    if (!self->streaming)
        return 0;
    OFP_LIST_EACH(peer, next_peer, &self->peers) {
        struct fake_peer *from = OFP_CONTAINER_OF(peer, struct fake_peer, node);

        OFP_LIST_EACH(node, following, &from->streams) {
            stream_piece(from, OFP_CONTAINER_OF(node, struct packet, node));
            moved++;
        }
    }
    return moved;
}

/* ------------------------------------------------------------------------------------------------------------ pulls */

void fake_pull(struct ofp_endpoint *endpoint, const struct ofp_receive *receive, struct packet *packet)
{
    packet->stage = PACKET_PULL;
    packet->receive_id = receive->id;
    fake_reply(endpoint, packet, 0);
}

int fake_pulled(struct fake_peer *to, const struct ofp_pending *pending, struct packet *pull)
{
    struct mailbox *own = private_of(to->peer->endpoint)->mailbox;
    struct packet *answer = pending ? packet_new(own, to->target, &pending->transfer, true) : NULL;
    int error = 0;

    if (answer) {
        answer->receive_id = pull->receive_id;
        answer->pending_id = pull->pending_id;
        packet_free(pull);
    } else {
        /* The question is the answer then, and nobody waits for its return. */
        answer = pull;
        answer->pending_id = 0;
        error = answer->error = pending ? ENOMEM : ECANCELED;
    }
    answer->stage = PACKET_PAYLOAD;
    mailbox_put_answer(to->target, answer);
    return error;
}

void fake_payload_arrived(struct ofp_endpoint *endpoint, struct packet *packet)
{
    struct ofp_peer *peer = fake_sender(endpoint, packet);
    /* None where the peer was lost, or the receive given up, while the question was under way. */
    struct ofp_receive *receive = peer ? ofp_receive_find(peer, packet->receive_id) : NULL;

    if (receive) {
        ofp_receive_write(receive, 0, packet->payload, packet->error ? 0 : receive->length);
        ofp_receive_complete(receive, packet->error, 0);
    }
    packet->stage = PACKET_WHOLE;
    fake_reply(endpoint, packet, 0);
}
