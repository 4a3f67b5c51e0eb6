/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/rma.h"

#include <errno.h>
#include <string.h>

#include "ofipy/iov.h"
#include "rdm/transfer/move.h"
#include "rdm/transfer/path.h"
#include "rdm/transfer/request.h"
#include "ofipy/check.h"

/*
 * Whether the device can execute the operation without the peer's process; `there` gets the address and key. Only for
 * one piece: a device would have written the first piece when it refuses the second, but the peer's core checks all
 * first.
 */
static bool is_direct(const struct ofpi_rdm_path *path, const struct ofp_transfer *transfer,
                      struct ofp_remote_segment *there)
{
    const struct ofpi_channel_ops *ops = path->base.channel->ops;
    uint16_t op = transfer->op->op;

    return transfer->length && transfer->remote_count == 1 && !ofp_operation_is(op, OFP_ATOMIC_KIND) &&
           ops->properties & (op == OFP_READ ? OFPI_CHANNEL_GET : OFPI_CHANNEL_PUT) &&
           ofp_remote_at_device(path->base.peer, transfer->remote, there) && ops->knows_key(&path->base, there->key);
}

static void moves_finished(struct ofpi_rdm_move *move, int error)
{
    struct ofp_pending *pending = move->owner;
    const struct ofp_operation *op = &pending->operation;

    OFP_CHECK(pending->provider_data[OFPI_RDM_STATE] == OFPI_RDM_MOVING && move->length == pending->transfer.length);
    /* The channel keeps the order, so the notice arrives after the puts. */
    if (!error && op->flags & OFP_REMOTE_CQ_DATA)
        ofpi_rdm_control_send(
            move->path,
            &(struct ofpi_rdm_packet){.kind = OFPI_RDM_NOTICE, .data = op->data, .length = pending->transfer.length});
    ofp_transfer_complete(pending, error, move->provider_error);
}

/* False: the device cannot register our memory. */
static bool move_by_device(struct ofpi_rdm_path *path, struct ofp_pending *pending,
                           const struct ofp_remote_segment *there)
{
    const struct ofp_transfer *transfer = &pending->transfer;
    bool reads = transfer->op->op == OFP_READ;
    struct ofpi_rdm_piece remote = {there->offset, transfer->length, there->key};
    struct ofpi_rdm_registration *registration =
        ofpi_rdm_memory_register(path, transfer->iov, transfer->regions, transfer->iov_count, transfer->length,
                                 reads ? OFP_ACCESS_READ : OFP_ACCESS_WRITE);

    pending->provider_data[OFPI_RDM_STATE] = OFPI_RDM_MOVING;
    if (registration && ofpi_rdm_move(path, !reads, registration, &remote, 1, moves_finished, pending) == 0)
        return true;
    ofpi_rdm_memory_deregister(path, registration);
    return false;
}

/* ------------------------------------------------------------------------------------------------ the device's atomics */

#define WORD sizeof(uint64_t)

/* Build the atomic of the device: fetch-and-add or compare-and-swap of one aligned word. 0 or a negative errno. */
static int build_word(const struct ofpi_rdm_path *path, const struct ofp_transfer *transfer, struct ofpi_word *word)
{
    const struct ofp_operation *op = transfer->op;
    const struct ofpi_channel_ops *ops = path->base.channel->ops;
    bool compares = op->op == OFP_COMPARE_ATOMIC;
    struct ofp_remote_segment there;

    if (!ops->atomic || (op->datatype != OFP_INT64 && op->datatype != OFP_UINT64) ||
        op->atomic_op != (compares ? OFP_ATOMIC_CSWAP : OFP_ATOMIC_SUM))
        return -EOPNOTSUPP;
    if (transfer->length > WORD)
        return -EMSGSIZE;
    if (transfer->remote_count != 1 || transfer->length < WORD)
        return -EINVAL;
    /* The device does not know memory under a key that its owner chose. */
    if (!ofp_remote_at_device(path->base.peer, transfer->remote, &there) || !ops->knows_key(&path->base, there.key))
        return -EOPNOTSUPP;
    if (there.offset % WORD)
        return -EINVAL;
    *word = (struct ofpi_word){.address = there.offset, .key = there.key, .compares = compares};
    ofp_iov_gather(&word->operand, transfer->iov, transfer->iov_count, 0, WORD);
    if (compares)
        memcpy(&word->compare, transfer->compare, WORD);
    return 0;
}

static void word_changed(struct ofpi_rdm_move *move, int error)
{
    struct ofp_pending *pending = move->owner;

    OFP_CHECK(pending->provider_data[OFPI_RDM_STATE] == OFPI_RDM_MOVING && pending->transfer.length == WORD);
    if (!error && pending->transfer.result)
        memcpy(pending->transfer.result, move->packet->bytes, WORD);
    ofp_transfer_complete(pending, error, move->provider_error);
}

static int post_word(struct ofpi_rdm_path *path, const struct ofp_transfer *transfer)
{
    struct ofp_pending *pending;
    struct ofpi_word word;
    int result = build_word(path, transfer, &word);

    if (result)
        return result;
    if (!ofpi_rdm_can_send(path, OFPI_RDM_REMOTE))
        return -EAGAIN;
    pending = ofp_transfer_retain(path->endpoint->base, path->base.peer, transfer);
    if (!pending)
        return -EAGAIN;
    pending->provider_data[OFPI_RDM_STATE] = OFPI_RDM_MOVING;
    if (ofpi_rdm_atomic_start(path, &word, word_changed, pending) != 0)
        ofp_transfer_complete(pending, ENOMEM, 0);
    return OFP_POST_PENDING;
}

/* ----------------------------------------------------------------------------------------------------------- all others */

int ofpi_rdm_remote_post(struct ofpi_rdm_path *path, const struct ofp_transfer *transfer)
{
    struct ofp_remote_segment there;
    struct ofp_pending *pending;
    bool direct;

    if (transfer->op->flags & OFP_DEVICE_ATOMIC)
        return post_word(path, transfer);
    direct = is_direct(path, transfer, &there);
    /* Both ways need space for a first packet. */
    if (!ofpi_rdm_can_send(path, OFPI_RDM_REMOTE))
        return -EAGAIN;
    pending = ofp_transfer_retain(path->endpoint->base, path->base.peer, transfer);
    if (!pending)
        return -EAGAIN;
    if (!direct || !move_by_device(path, pending, &there))
        ofpi_rdm_remote_start(path, pending);
    return OFP_POST_PENDING;
}

void ofpi_rdm_notice_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    ofp_remote_event(path->endpoint->base, path->base.peer, NULL,
                     OFP_COMPLETED_REMOTE_WRITE | OFP_COMPLETED_REMOTE_CQ_DATA, packet->data, packet->length);
}
