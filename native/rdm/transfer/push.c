/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/push.h"

#include <errno.h>
#include <stdlib.h>

#include "ofipy/iov.h"
#include "rdm/transfer/registration.h"
#include "rdm/transfer/move.h"
#include "rdm/transfer/path.h"
#include "ofipy/check.h"

/* A message that leaves in fragments. The messages of a path leave one after the other. */
struct ofpi_rdm_push {
    struct ofp_list node; /* path->pushes */
    struct ofp_pending *pending;
    uint64_t receive; /* id of the peer's receive */
    uint64_t offset, length;
};

static struct ofpi_rdm_push *push_of_pending(const struct ofp_pending *pending)
{
    return (struct ofpi_rdm_push *)(uintptr_t)pending->provider_data[OFPI_RDM_PUSH];
}

static void end_push(struct ofpi_rdm_push *push)
{
    push->pending->provider_data[OFPI_RDM_PUSH] = 0;
    ofp_list_remove(&push->node);
    free(push);
}

/* ------------------------------------------------------------------------------------------------------- fragments */

static bool push_fragment(struct ofpi_rdm_path *path, struct ofpi_rdm_push *push)
{
    struct ofpi_rdm_packet header = {.kind = OFPI_RDM_DATA, .receive = push->receive, .offset = push->offset};
    uint64_t space = path->packet_size - ofpi_rdm_header_compute_size(OFPI_RDM_DATA, 0);
    uint64_t length = push->length - push->offset < space ? push->length - push->offset : space;
    uint8_t *payload;
    struct ofpi_packet *packet = ofpi_rdm_packet_build(path, &header, &payload);

    if (!packet)
        return false;
    OFP_CHECK(push->offset < push->length && push->length <= push->pending->transfer.length);
    ofp_iov_gather(payload, push->pending->transfer.iov, push->pending->transfer.iov_count, push->offset, length);
    push->offset += length;
    ofpi_rdm_packet_send(path, packet, length, push->offset < push->length);
    return true;
}

int ofpi_rdm_pushes_resume(struct ofpi_rdm_path *path)
{
    int count = 0;

    while (!ofp_list_empty(&path->pushes)) {
        struct ofpi_rdm_push *push = OFP_CONTAINER_OF(path->pushes.next, struct ofpi_rdm_push, node);

        if (!push_fragment(path, push))
            break;
        count++;
        /* The packet DONE ends the operation. */
        if (push->offset == push->length)
            end_push(push);
    }
    return count;
}

static void start_push(struct ofpi_rdm_path *path, struct ofp_pending *pending, const struct ofpi_rdm_packet *packet)
{
    struct ofpi_rdm_push *push = malloc(sizeof(*push));

    if (!push) {
        ofpi_rdm_path_mark_failed(path, ENOMEM, "out of memory for a message that was called for");
        return;
    }
    *push = (struct ofpi_rdm_push){.pending = pending, .receive = packet->receive, .length = packet->length};
    pending->provider_data[OFPI_RDM_PUSH] = (uint64_t)(uintptr_t)push;
    ofp_list_append(&path->pushes, &push->node);
    ofpi_rdm_pushes_resume(path);
}

/* ------------------------------------------------------------------------------------------------------------ puts */

static void puts_finished(struct ofpi_rdm_move *move, int error)
{
    struct ofp_pending *pending = move->owner;
    struct ofpi_rdm_packet pushed = {
        .kind = OFPI_RDM_PUSHED, .receive = pending->provider_data[OFPI_RDM_RECEIVE], .error = error};

    OFP_CHECK(pending->provider_data[OFPI_RDM_STATE] == OFPI_RDM_MOVING);
    pending->provider_data[OFPI_RDM_STATE] = OFPI_RDM_PULLED;
    ofpi_rdm_control_send(move->path, &pushed);
}

/* False: the device cannot. No DONE is accepted until the last put has ended, because the device uses the memory. */
static bool push_by_device(struct ofpi_rdm_path *path, struct ofp_pending *pending,
                           const struct ofpi_rdm_packet *packet)
{
    const struct ofp_transfer *transfer = &pending->transfer;
    struct ofpi_rdm_registration *registration = ofpi_rdm_memory_register(
        path, transfer->iov, transfer->regions, transfer->iov_count, packet->length, OFP_ACCESS_SEND);

    pending->provider_data[OFPI_RDM_STATE] = OFPI_RDM_MOVING;
    pending->provider_data[OFPI_RDM_RECEIVE] = packet->receive;
    if (registration &&
        ofpi_rdm_move(path, true, registration, packet->pieces, packet->count, puts_finished, pending) == 0)
        return true;
    ofpi_rdm_memory_deregister(path, registration);
    return false;
}

/* --------------------------------------------------------------------------------------------------------- packets */

void ofpi_rdm_pull_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_pending *pending = ofp_pending_find(path->base.peer, packet->id);
    bool can_put = path->base.channel->ops->properties & OFPI_CHANNEL_PUT;

    if (!pending || pending->provider_data[OFPI_RDM_STATE] != OFPI_RDM_ANNOUNCED || !packet->length ||
        packet->length > pending->transfer.length || (packet->count && !can_put)) {
        ofpi_rdm_path_mark_failed(path, EPROTO, "it called for a message that was not announced");
        return;
    }
    if (packet->count && push_by_device(path, pending, packet))
        return;
    pending->provider_data[OFPI_RDM_STATE] = OFPI_RDM_PULLED;
    start_push(path, pending, packet);
}

void ofpi_rdm_done_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    struct ofp_pending *pending = ofp_pending_find(path->base.peer, packet->id);

    if (!pending || (pending->provider_data[OFPI_RDM_STATE] != OFPI_RDM_ANNOUNCED &&
                     pending->provider_data[OFPI_RDM_STATE] != OFPI_RDM_PULLED)) {
        ofpi_rdm_path_mark_failed(path, EPROTO, "it received a message that was not announced");
        return;
    }
    if (push_of_pending(pending))
        end_push(push_of_pending(pending));
    ofpi_rdm_memory_deregister(
        path, (struct ofpi_rdm_registration *)(uintptr_t)pending->provider_data[OFPI_RDM_REGISTRATION]);
    ofp_transfer_complete(pending, packet->error, 0);
}
