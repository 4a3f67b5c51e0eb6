/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA and atomics that are requested of the peer, the initiator's side. An operation is split into parts that fit into
 * a bounce buffer. Each part uses one of the initiator's buffers; the answer returns the buffer, with the data that was
 * read in it.
 */
#include "rma/request.h"

#include <errno.h>

#include "base/pending.h"
#include "link/bounce.h"
#include "link/link.h"
#include "link/publish.h"
#include "ofipy/iov.h"

/* Offset of a part's payload: on a cache line of its own. */
static uint32_t compute_payload_offset(uint32_t piece_count)
{
    size_t header = sizeof(struct shm_request) + piece_count * sizeof(struct shm_remote_piece);

    return (uint32_t)((header + SHM_CACHE_LINE - 1) / SHM_CACHE_LINE * SHM_CACHE_LINE);
}

/* Bytes of an operation that one part can contain: whole elements of any type. */
static uint64_t compute_part_limit(const struct shm_endpoint *endpoint, const struct ofp_transfer *transfer)
{
    uint64_t room = endpoint->segment.bounce_size - compute_payload_offset(transfer->remote_count);

    if (ofp_operation_is(transfer->op->op, OFP_COMPARES))
        room /= 2;
    return room / 16 * 16;
}

/* ---------------------------------------------------------------------------------------------------------- parts */

static void fill_part(struct shm_request *request, const struct ofp_transfer *transfer, uint64_t offset,
                      uint32_t length)
{
    const struct ofp_operation *op = transfer->op;
    char *payload = (char *)request + compute_payload_offset(transfer->remote_count);

    *request = (struct shm_request){.offset = offset,
                                    .length = length,
                                    .piece_count = transfer->remote_count,
                                    .op = (uint8_t)op->op,
                                    .atomic_op = op->atomic_op,
                                    .datatype = op->datatype};
    for (uint32_t i = 0; i < transfer->remote_count; i++)
        shm_pieces_of(request)[i] =
            (struct shm_remote_piece){transfer->remote[i].offset, transfer->remote[i].length, transfer->remote[i].key};
    if (!(ofp_operation_remote_access(op->op, op->atomic_op) & OFP_ACCESS_REMOTE_WRITE))
        return;
    ofp_iov_gather(payload, transfer->iov, transfer->iov_count, offset, length);
    if (ofp_operation_is(op->op, OFP_COMPARES) && length)
        ofp_memory_copy(payload + length, (const char *)transfer->compare + offset, length);
}

/* 0, -EAGAIN, or an error that ends the operation. */
static int send_part(struct shm_link *link, struct ofp_pending *pending)
{
    struct shm_endpoint *endpoint = link->endpoint;
    const struct ofp_transfer *transfer = &pending->transfer;
    uint64_t *sent = &pending->provider_data[SHM_PENDING_OFFSET], room = compute_part_limit(endpoint, transfer), state;
    uint32_t length = (uint32_t)(transfer->length - *sent < room ? transfer->length - *sent : room);
    struct shm_bounce_buffer *buffer;
    struct shm_slot *slot;
    int index;

    if (!shm_ring_has_space(&link->ring))
        return -EAGAIN;
    index = shm_bounce_allocate(link, true);
    if (index < 0)
        return index;
    fill_part((struct shm_request *)(void *)shm_bounce_resolve(&endpoint->segment, (uint32_t)index), transfer, *sent,
              length);
    slot = shm_ring_claim(&link->ring, link->number_there, &state);
    if (!slot) {
        shm_bounce_free(endpoint, (uint32_t)index);
        return -EAGAIN;
    }
    buffer = &endpoint->bounce.buffers[index];
    buffer->pending = pending->id;
    buffer->offset = *sent;
    buffer->length = length;
    buffer->payload = compute_payload_offset(transfer->remote_count);
    *sent += length;
    pending->provider_data[SHM_PENDING_PARTS]++;
    slot->content.kind = SHM_REMOTE;
    slot->content.flags = (uint8_t)((*sent == transfer->length ? SHM_LAST : 0) |
                                    (transfer->op->flags & OFP_REMOTE_CQ_DATA ? SHM_HAS_DATA : 0));
    slot->content.length = buffer->payload + length * (ofp_operation_is(transfer->op->op, OFP_COMPARES) ? 2 : 1);
    slot->content.data = transfer->op->data;
    slot->content.bounce = (struct shm_bounce_fields){.index = (uint32_t)index, .generation = buffer->generation};
    shm_slot_publish(link, slot, state);
    OFP_SHM_STEP(request_sent);
    return 0;
}

/* Send as many parts as there is space for. True: all have left, or an error ends the operation. */
static bool send_parts(struct shm_link *link, struct ofp_pending *pending)
{
    int result = 0;

    if (pending->provider_data[SHM_PENDING_ERROR])
        return true;
    do
        result = link->up ? send_part(link, pending) : -EAGAIN;
    while (!result && pending->provider_data[SHM_PENDING_OFFSET] < pending->transfer.length);
    if (result && result != -EAGAIN)
        pending->provider_data[SHM_PENDING_ERROR] = (uint64_t)-result;
    return !result;
}

static void complete_request(struct shm_link *link, struct ofp_pending *pending)
{
    uint64_t packed = pending->provider_data[SHM_PENDING_ERROR];

    OFP_CHECK(link->unanswered > 0 && pending->provider_data[SHM_PENDING_PARTS] == 0);
    link->unanswered--;
    ofp_transfer_complete(pending, (int)(packed & INT32_MAX), (int)(uint32_t)(packed >> 32));
}

/* -------------------------------------------------------------------------------------------------------- operations */

int shm_request_post(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer)
{
    struct ofp_pending *pending = ofp_transfer_retain(base, link->peer, transfer);

    if (!pending)
        return -EAGAIN;
    shm_remote_start(link, pending);
    shm_request_resume(link, pending);
    if (send_parts(link, pending))
        shm_remote_end(link);
    return OFP_POST_PENDING;
}

void shm_request_resume(struct shm_link *link, struct ofp_pending *pending)
{
    pending->provider_data[SHM_PENDING_STATE] = SHM_PENDING_REQUESTED;
    link->unanswered++;
}

int shm_request_progress(struct shm_link *link, struct ofp_pending *pending)
{
    uint64_t sent = pending->provider_data[SHM_PENDING_OFFSET];

    OFP_CHECK(link->remote_operation == pending);
    if (!send_parts(link, pending))
        return pending->provider_data[SHM_PENDING_OFFSET] != sent;
    shm_remote_end(link);
    if (!pending->provider_data[SHM_PENDING_PARTS])
        complete_request(link, pending);
    return 1;
}

/* ----------------------------------------------------------------------------------------------------------- answers */

static void copy_results(const struct ofp_transfer *transfer, const struct shm_bounce_buffer *buffer,
                         const char *payload)
{
    if (transfer->op->op == OFP_READ)
        ofp_iov_scatter(transfer->iov, transfer->iov_count, buffer->offset, payload, buffer->length);
    else if (transfer->result)
        ofp_memory_copy((char *)transfer->result + buffer->offset, payload, buffer->length);
}

bool shm_answer_arrived(struct shm_link *link, const struct shm_content *content)
{
    struct shm_endpoint *endpoint = link->endpoint;
    const struct shm_control_fields *fields = &content->control;
    uint32_t index = (uint32_t)(fields->receive >> 32);
    struct shm_bounce_buffer *buffer = index < endpoint->segment.bounce_count ? &endpoint->bounce.buffers[index] : NULL;
    struct ofp_pending *pending;

    if (!buffer || buffer->user != link || !buffer->pending || buffer->generation != (uint32_t)fields->receive)
        return false;
    pending = ofp_pending_find(link->peer, buffer->pending);
    if (!pending)
        return false;
    if (!fields->error)
        copy_results(&pending->transfer, buffer, shm_bounce_resolve(&endpoint->segment, index) + buffer->payload);
    else if (!pending->provider_data[SHM_PENDING_ERROR])
        pending->provider_data[SHM_PENDING_ERROR] =
            (uint64_t)(uint32_t)fields->provider_error << 32 | (uint32_t)(fields->error > 0 ? fields->error : EIO);
    shm_bounce_free(endpoint, index);
    OFP_CHECK(pending->provider_data[SHM_PENDING_PARTS] > 0);
    if (--pending->provider_data[SHM_PENDING_PARTS] == 0 && link->remote_operation != pending)
        complete_request(link, pending);
    return true;
}
