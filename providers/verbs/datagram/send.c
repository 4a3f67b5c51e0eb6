/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram sends. A datagram is done when the device has sent it. Completion levels go no further, since no
 * acknowledgement exists.
 */
#include "datagram/send.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datagram/work_id.h"
#include "memory/slot.h"
#include "queue/fault.h"

/* ---------------------------------------------------------------------------------------------------------- posting */

static int post_datagram(struct verbs_datagram *endpoint, const struct ofp_peer *peer,
                         const struct ofp_transfer *transfer, struct ibv_sge *segment, bool is_inline)
{
    const struct verbs_datagram_peer *known = peer->private;
    bool with_data = transfer->op->flags & OFP_REMOTE_CQ_DATA;
    struct ibv_send_wr *bad, request = {.wr_id = verbs_work_id_build(endpoint, (uint32_t)endpoint->queue.head, false),
                                        .sg_list = segment,
                                        .num_sge = segment->length ? 1 : 0,
                                        .opcode = with_data ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
                                        .send_flags = is_inline ? IBV_SEND_INLINE : 0,
                                        .imm_data = htonl((uint32_t)transfer->op->data)};

    request.wr.ud.ah = known->handle;
    request.wr.ud.remote_qpn = known->qpn;
    request.wr.ud.remote_qkey = VERBS_QKEY;
    return -ibv_post_send(endpoint->qp, &request, &bad);
}

static int check_datagram(const struct verbs_datagram *endpoint, const struct ofp_transfer *transfer)
{
    if (transfer->op->flags & (OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE))
        return -EOPNOTSUPP;
    if (transfer->op->flags & OFP_REMOTE_CQ_DATA && transfer->op->data > UINT32_MAX)
        return -EOVERFLOW;
    return verbs_send_queue_count_space(&endpoint->queue) ? 0 : -EAGAIN;
}

/* Accept the operation and end it with an error, so that its completion has the reason. */
static int fail_datagram(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofp_pending *pending = ofp_transfer_retain(base, peer, transfer);

    if (!pending)
        return -ENODEV;
    ofp_transfer_complete(pending, ENODEV, verbs_code_of_fault(VERBS_FAULT_REMOVED));
    return OFP_POST_PENDING;
}

int verbs_datagram_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(base);
    struct verbs_datagram_send send = {NULL, NULL};
    char bytes[VERBS_INLINE_MAX];
    struct ibv_sge segment = {.addr = (uintptr_t)bytes, .length = (uint32_t)transfer->length};
    bool is_inline = transfer->length <= endpoint->inline_size && transfer->length <= sizeof(bytes);
    int result = check_datagram(endpoint, transfer);

    if (endpoint->dead || endpoint->domain->removed)
        return fail_datagram(base, peer, transfer);
    if (result)
        return result;
    if (!is_inline) {
        send.slot = verbs_slot_allocate(endpoint->domain);
        if (!send.slot)
            return -ENOMEM;
        segment.addr = (uintptr_t)send.slot->memory;
        segment.lkey = send.slot->key;
    }
    verbs_iov_gather((char *)(uintptr_t)segment.addr, transfer->iov, transfer->iov_count, transfer->length);
    result = post_datagram(endpoint, peer, transfer, &segment, is_inline);
    if (!result && transfer->op->flags & OFP_TRANSMIT_COMPLETE)
        /* The datagram is sent already. Without memory for a pending object its completion is lost. */
        send.pending = ofp_transfer_retain(base, peer, transfer);
    if (result) {
        if (send.slot)
            verbs_slot_free(endpoint->domain, send.slot);
        return result;
    }
    endpoint->sends[verbs_send_queue_append(&endpoint->queue)] = send;
    return send.pending ? OFP_POST_PENDING : OFP_POST_DONE;
}

/* -------------------------------------------------------------------------------------------------------------- end */

static struct ofp_pending *pop_oldest_datagram(struct verbs_datagram *endpoint)
{
    struct verbs_datagram_send send = endpoint->sends[verbs_send_queue_pop(&endpoint->queue)];

    if (send.slot)
        verbs_slot_free(endpoint->domain, send.slot);
    return send.pending;
}

static void complete_oldest_datagram(struct verbs_datagram *endpoint, int error, int provider_error)
{
    struct ofp_pending *pending = pop_oldest_datagram(endpoint);

    if (pending)
        ofp_transfer_complete(pending, error, provider_error);
}

void verbs_datagram_sent(struct verbs_datagram *endpoint, uint32_t number)
{
    while ((int32_t)(number - (uint32_t)endpoint->queue.tail) >= 0)
        complete_oldest_datagram(endpoint, 0, 0);
}

void verbs_datagram_sends_fail(struct verbs_datagram *endpoint, int error, int provider_error)
{
    while (!verbs_datagram_is_idle(endpoint))
        complete_oldest_datagram(endpoint, error, provider_error);
}

void verbs_datagram_sends_discard(struct verbs_datagram *endpoint)
{
    while (!verbs_datagram_is_idle(endpoint))
        pop_oldest_datagram(endpoint);
    free(endpoint->sends);
    endpoint->sends = NULL;
}
