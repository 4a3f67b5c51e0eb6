/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA and atomics: the request travels through the mailbox like a message, the target's progress carries it out, and the
 * packet comes back with what was read. All of a request is checked before any of it is done.
 */
#include <errno.h>
#include <string.h>

#include "fake.h"
#include "ofipy/iov.h"

void fake_remote_request(struct packet *packet, const struct ofp_transfer *transfer)
{
    packet->atomic_op = transfer->op->atomic_op;
    packet->datatype = transfer->op->datatype;
    packet->remote_count = transfer->remote_count;
    memcpy(packet->remote, transfer->remote, transfer->remote_count * sizeof(packet->remote[0]));
    if (ofp_operation_is(packet->operation, OFP_COMPARES))
        ofp_memory_copy(packet->payload + transfer->length, transfer->compare, transfer->length);
}

static uint64_t event_of(const struct packet *packet)
{
    return ofp_operation_row(packet->operation)->event | (packet->has_data ? OFP_COMPLETED_REMOTE_CQ_DATA : 0);
}

/* `memory`: the packet's part for this piece. */
static int serve_piece(struct packet *packet, const struct ofp_remote_access *access, char *memory)
{
    if (ofp_operation_is(packet->operation, OFP_ATOMIC_KIND))
        return fake_core->atomic_execute(access, packet->operation, packet->atomic_op, packet->datatype, memory,
                                         memory + packet->length, memory);
    if (packet->operation == OFP_READ)
        ofp_memory_copy(memory, access->memory, access->length);
    else
        ofp_memory_copy(access->memory, memory, access->length);
    return 0;
}

void fake_remote_serve(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct packet *packet)
{
    struct ofp_remote_access accesses[OFP_SEGMENT_LIMIT];
    struct ofp_region *region = NULL;
    uint32_t rights = ofp_operation_remote_access(packet->operation, packet->atomic_op), held = 0;
    uint64_t offset = 0;
    int result = 0;

    while (!result && held < packet->remote_count) {
        const struct ofp_remote_segment *piece = &packet->remote[held];

        result = ofp_remote_access(endpoint, piece->key, piece->offset, piece->length, rights, &accesses[held]);
        held += !result;
    }
    for (uint32_t i = 0; !result && i < held; i++) {
        if (accesses[i].length)
            result = serve_piece(packet, &accesses[i], packet->payload + offset);
        offset += accesses[i].length;
    }
    if (held)
        region = accesses[0].region;
    for (uint32_t i = 0; i < held; i++)
        fake_core->remote_release(&accesses[i]);
    if (result)
        packet->provider_error = -result;
    else
        ofp_remote_event(endpoint, peer, region, event_of(packet), packet->data, packet->length);
    fake_reply(endpoint, packet, result ? OFP_EREMOTE : 0);
}

/* Back at the initiator, and well: hand over what was read. */
void fake_remote_answered(const struct packet *packet, const struct ofp_transfer *transfer)
{
    if (!ofp_operation_is(packet->operation, OFP_READS))
        return;
    if (ofp_operation_is(packet->operation, OFP_ATOMIC_KIND))
        ofp_memory_copy(transfer->result, packet->payload, packet->length);
    else
        ofp_iov_scatter(transfer->iov, transfer->iov_count, 0, packet->payload, packet->length);
}
