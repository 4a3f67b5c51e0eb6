/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ofipy/check.h"

struct ofp_message ofpi_rdm_message_build(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet,
                                          uint64_t length)
{
    bool announced = packet->kind == OFPI_RDM_ANNOUNCE;

    return (struct ofp_message){
        .peer = path->base.peer,
        .source = path->base.peer->index,
        .channel = packet->channel,
        .has_data = packet->flags & OFPI_RDM_HAS_DATA,
        .extras = announced ? OFP_EXTRA_PROTOCOL : 0,
        .protocol = announced ? OFP_PROTOCOL_ANNOUNCED : OFP_PROTOCOL_EAGER,
        .tag = packet->channel != OFP_CHANNEL_MESSAGE ? packet->tag : 0,
        .data = packet->data,
        .length = length,
        .provider_data = {[OFPI_RDM_MESSAGE_PATH] = (uint64_t)(uintptr_t)path, [OFPI_RDM_MESSAGE_ID] = packet->id},
    };
}

void ofpi_rdm_unexpected_free(struct ofpi_rdm_unexpected *stored)
{
    if (!stored)
        return;
    ofp_list_remove(&stored->node);
    free(stored);
}

int ofpi_rdm_message_announce(struct ofpi_rdm_path *path, struct ofp_message *message,
                              struct ofpi_rdm_unexpected *stored)
{
    int result;

    OFP_CHECK(ofpi_rdm_is_known(path) && message->peer == path->base.peer);
    /* Append to the list first: the core may call receive_start from within. */
    if (stored)
        ofp_list_append(&path->announced, &stored->node);
    message->provider_data[OFPI_RDM_MESSAGE_STORED] = (uint64_t)(uintptr_t)stored;
    result = ofp_message_announced(path->endpoint->base, message);
    if (result)
        ofpi_rdm_unexpected_free(stored);
    return result ? -EAGAIN : 0;
}

int ofpi_rdm_eager_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_message message = ofpi_rdm_message_build(path, packet, packet->payload_length);
    struct ofpi_rdm_unexpected *stored;
    int result = ofp_message_arrived(path->endpoint->base, &message, packet->payload);

    if (result != -EAGAIN)
        return result;
    /* The core's bound for unexpected payload is reached. Announcements have a bound of their own: store the payload here. */
    stored = malloc(sizeof(*stored) + packet->payload_length);
    if (!stored)
        return -EAGAIN;
    *stored = (struct ofpi_rdm_unexpected){.whole = true};
    memcpy(stored->pieces, packet->payload, packet->payload_length);
    return ofpi_rdm_message_announce(path, &message, stored);
}
