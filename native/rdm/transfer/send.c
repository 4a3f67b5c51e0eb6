/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/send.h"

#include <errno.h>

#include "ofipy/iov.h"
#include "rdm/transfer/registration.h"
#include "rdm/transfer/path.h"

#define LEVELS (OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)

static struct ofpi_rdm_packet build_message_header(const struct ofp_transfer *transfer, enum ofpi_rdm_kind kind)
{
    const struct ofp_operation *op = transfer->op;

    return (struct ofpi_rdm_packet){
        .kind = (uint8_t)kind,
        .flags = op->flags & OFP_REMOTE_CQ_DATA ? OFPI_RDM_HAS_DATA : 0,
        .channel = ofp_operation_row(op->op)->channel,
        .tag = op->tag,
        .data = op->flags & OFP_REMOTE_CQ_DATA ? op->data : 0,
        .length = transfer->length,
    };
}

static int send_eager(struct ofpi_rdm_path *path, const struct ofp_transfer *transfer)
{
    struct ofpi_rdm_packet header = build_message_header(transfer, OFPI_RDM_EAGER);
    uint8_t *payload;
    struct ofpi_packet *packet = ofpi_rdm_packet_build(path, &header, &payload);

    if (!packet)
        return -EAGAIN;
    ofp_iov_gather(payload, transfer->iov, transfer->iov_count, 0, transfer->length);
    ofpi_rdm_packet_send(path, packet, transfer->length, transfer->op->flags & OFP_MORE);
    return OFP_POST_DONE;
}

static int send_announcement(struct ofpi_rdm_path *path, const struct ofp_transfer *transfer)
{
    struct ofpi_rdm_packet header = build_message_header(transfer, OFPI_RDM_ANNOUNCE);
    struct ofp_pending *pending;
    struct ofpi_packet *packet;
    uint8_t *payload;

    /* Check first: a retained operation cannot be returned. */
    if (!ofpi_rdm_can_send(path, OFPI_RDM_ANNOUNCE))
        return -EAGAIN;
    pending = ofp_transfer_retain(path->endpoint->base, path->base.peer, transfer);
    if (!pending)
        return -EAGAIN;
    transfer = &pending->transfer;
    pending->provider_data[OFPI_RDM_STATE] = OFPI_RDM_ANNOUNCED;
    pending->protocol = OFP_PROTOCOL_ANNOUNCED;
    if (path->base.channel->ops->properties & OFPI_CHANNEL_GET) {
        struct ofpi_rdm_registration *registration = ofpi_rdm_memory_register(
            path, transfer->iov, transfer->regions, transfer->iov_count, transfer->length, OFP_ACCESS_REMOTE_READ);

        ofpi_rdm_registration_fill_pieces(registration, &header);
        pending->provider_data[OFPI_RDM_REGISTRATION] = (uint64_t)(uintptr_t)registration;
    }
    if ((transfer->op->flags & LEVELS) == OFP_DELIVERY_COMPLETE)
        header.flags |= OFPI_RDM_FETCH;
    header.id = pending->id;
    packet = ofpi_rdm_packet_build(path, &header, &payload);
    if (packet)
        ofpi_rdm_packet_send(path, packet, 0, transfer->op->flags & OFP_MORE);
    return OFP_POST_PENDING;
}

static inline bool is_announcement_needed(const struct ofpi_rdm_path *path, uint64_t length, uint64_t op_flags)
{
    return path->announce || op_flags & LEVELS || length > path->packet_size - OFPI_RDM_EAGER_HEADER;
}

int ofpi_rdm_message_send(struct ofpi_rdm_path *path, const struct ofp_transfer *transfer)
{
    if (!ofpi_rdm_can_send(path, OFPI_RDM_EAGER))
        return -EAGAIN;
    if (is_announcement_needed(path, transfer->length, transfer->op->flags))
        return send_announcement(path, transfer);
    return send_eager(path, transfer);
}

bool ofpi_rdm_protocol_choose(const struct ofp_peer *peer, const struct ofp_protocol_query *query,
                              struct ofp_protocol_choice *choice)
{
    const struct ofpi_rdm_path *path = ofpi_rdm_peer_of(peer)->path;

    if (!path || query->received)
        return false;
    choice->protocol = is_announcement_needed(path, query->length, 0) ? OFP_PROTOCOL_ANNOUNCED : OFP_PROTOCOL_EAGER;
    /* The receiver's core is full. */
    choice->reason = path->announce ? OFP_PROTOCOL_BY_MEMORY : OFP_PROTOCOL_BY_THRESHOLD;
    return true;
}
