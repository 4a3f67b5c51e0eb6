/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/request.h"

#include <assert.h>
#include <errno.h>

#include "ofipy/iov.h"
#include "rdm/transfer/path.h"
#include "ofipy/check.h"

/* The largest part of an operation: whole elements of every type, and an answer that fits in a packet. */
static uint64_t compute_part_limit(const struct ofpi_rdm_path *path, const struct ofp_transfer *transfer)
{
    uint64_t space = path->packet_size - OFPI_RDM_HEADER_MAX(transfer->remote_count);

    if (ofp_operation_is(transfer->op->op, OFP_COMPARES))
        space /= 2;
    return space / 16 * 16;
}

static uint64_t compute_part_length(const struct ofpi_rdm_path *path, const struct ofp_transfer *transfer,
                                    uint64_t offset)
{
    uint64_t space = compute_part_limit(path, transfer), left = transfer->length - offset;

    return left < space ? left : space;
}

/* --------------------------------------------------------------------------------------------------------- requests */

static struct ofpi_rdm_packet build_remote_header(const struct ofp_pending *pending, uint64_t offset, uint64_t length)
{
    const struct ofp_transfer *transfer = &pending->transfer;
    bool has_data = transfer->op->flags & OFP_REMOTE_CQ_DATA;
    struct ofpi_rdm_packet header = {
        .kind = OFPI_RDM_REMOTE,
        .flags =
            (uint8_t)((has_data ? OFPI_RDM_HAS_DATA : 0) | (offset + length == transfer->length ? OFPI_RDM_LAST : 0)),
        .op = (uint8_t)transfer->op->op,
        .atomic_op = transfer->op->atomic_op,
        .datatype = transfer->op->datatype,
        .id = pending->id,
        .data = has_data ? transfer->op->data : 0,
        .offset = offset,
        .length = length,
        .count = (uint8_t)transfer->remote_count,
    };

    for (uint32_t i = 0; i < transfer->remote_count; i++)
        header.pieces[i] =
            (struct ofpi_rdm_piece){transfer->remote[i].offset, transfer->remote[i].length, transfer->remote[i].key};
    return header;
}

/* Returns the length of the operands. */
static uint64_t write_operands(uint8_t *payload, const struct ofp_transfer *transfer, uint64_t offset, uint64_t length)
{
    if (!(ofp_operation_remote_access(transfer->op->op, transfer->op->atomic_op) & OFP_ACCESS_REMOTE_WRITE))
        return 0;
    ofp_iov_gather(payload, transfer->iov, transfer->iov_count, offset, length);
    if (!ofp_operation_is(transfer->op->op, OFP_COMPARES))
        return length;
    ofp_memory_copy(payload + length, length ? (const char *)transfer->compare + offset : NULL, length);
    return 2 * length;
}

static bool send_part(struct ofpi_rdm_path *path, struct ofp_pending *pending)
{
    const struct ofp_transfer *transfer = &pending->transfer;
    uint64_t offset = pending->provider_data[OFPI_RDM_SENT], length = compute_part_length(path, transfer, offset);
    struct ofpi_rdm_packet header = build_remote_header(pending, offset, length);
    uint8_t *payload;
    struct ofpi_packet *packet = ofpi_rdm_packet_build(path, &header, &payload);

    if (!packet)
        return false;
    pending->provider_data[OFPI_RDM_SENT] += length;
    pending->provider_data[OFPI_RDM_PARTS]++;
    ofpi_rdm_packet_send(path, packet, write_operands(payload, transfer, offset, length),
                         transfer->op->flags & OFP_MORE);
    return true;
}

static void complete_remote(struct ofp_pending *pending)
{
    uint64_t packed = pending->provider_data[OFPI_RDM_ERROR];

    OFP_CHECK(pending->provider_data[OFPI_RDM_STATE] == OFPI_RDM_ASKED && !pending->provider_data[OFPI_RDM_PARTS]);
    ofp_transfer_complete(pending, (int)(packed & INT32_MAX), (int)(uint32_t)(packed >> 32));
}

static bool is_sent(const struct ofp_pending *pending)
{
    return pending->provider_data[OFPI_RDM_SENT] == pending->transfer.length || pending->provider_data[OFPI_RDM_ERROR];
}

int ofpi_rdm_remote_resume(struct ofpi_rdm_path *path)
{
    struct ofp_pending *pending = path->parting;
    int count = 0;

    while (pending && !is_sent(pending) && send_part(path, pending))
        count++;
    if (!pending || !is_sent(pending))
        return count;
    path->parting = NULL;
    if (!pending->provider_data[OFPI_RDM_PARTS])
        complete_remote(pending);
    return count;
}

void ofpi_rdm_remote_start(struct ofpi_rdm_path *path, struct ofp_pending *pending)
{
    bool sent;

    OFP_CHECK(path->state == OFPI_RDM_UP && !path->parting);
    pending->provider_data[OFPI_RDM_STATE] = OFPI_RDM_ASKED;
    path->parting = pending;
    /* The caller checked that one packet can leave; an operation without bytes has one part too. */
    sent = send_part(path, pending);
    assert(sent);
    (void)sent;
    ofpi_rdm_remote_resume(path);
}

/* ---------------------------------------------------------------------------------------------------------- answers */

/* Whether an answer belongs to a part that was sent, and has the length of its result. */
static bool is_answer_expected(const struct ofpi_rdm_path *path, const struct ofp_pending *pending,
                               const struct ofpi_rdm_packet *packet)
{
    const struct ofp_transfer *transfer = &pending->transfer;
    uint64_t offset = packet->offset, length;

    if (pending->provider_data[OFPI_RDM_STATE] != OFPI_RDM_ASKED || !pending->provider_data[OFPI_RDM_PARTS])
        return false;
    if (transfer->length
            ? offset >= pending->provider_data[OFPI_RDM_SENT] || offset % compute_part_limit(path, transfer)
            : offset)
        return false;
    length = packet->error || !ofp_operation_is(transfer->op->op, OFP_READS)
                 ? 0
                 : compute_part_length(path, transfer, offset);
    return packet->payload_length == length;
}

static void store_results(const struct ofp_transfer *transfer, const struct ofpi_rdm_packet *packet)
{
    if (!packet->payload_length)
        return;
    if (transfer->op->op == OFP_READ)
        ofp_iov_scatter(transfer->iov, transfer->iov_count, packet->offset, packet->payload, packet->payload_length);
    else
        ofp_memory_copy((char *)transfer->result + packet->offset, packet->payload, packet->payload_length);
}

void ofpi_rdm_answer_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_pending *pending = ofp_pending_find(path->base.peer, packet->id);

    if (!pending || !is_answer_expected(path, pending, packet)) {
        ofpi_rdm_path_mark_failed(path, EPROTO, "it answered what was not asked");
        return;
    }
    if (!packet->error)
        store_results(&pending->transfer, packet);
    else if (!pending->provider_data[OFPI_RDM_ERROR])
        pending->provider_data[OFPI_RDM_ERROR] = (uint64_t)(uint32_t)packet->reason << 32 | (uint32_t)packet->error;
    if (--pending->provider_data[OFPI_RDM_PARTS] == 0 && path->parting != pending)
        complete_remote(pending);
}
