/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA and atomics: the request travels through the mailbox like a message, the target's progress carries it out, and the
 * packet comes back with what was read. All of a request is checked before any of it is done.
 */
#include <errno.h>
#include <string.h>

#include "fake.h"

void fake_remote_request(struct packet *packet, const struct ofp_transfer *transfer)
{
    packet->atomic_op = transfer->op->atomic_op;
    packet->datatype = transfer->op->datatype;
    packet->remote_count = transfer->remote_count;
    memcpy(packet->remote, transfer->remote, transfer->remote_count * sizeof(packet->remote[0]));
    if (packet->operation == OFP_COMPARE_ATOMIC && transfer->length)
        memcpy(packet->payload + transfer->length, transfer->compare, transfer->length);
}

/* What the region must grant, and what the target is told afterwards. A value that comes back is a read. */
static uint32_t rights_of(const struct packet *packet)
{
    switch (packet->operation) {
    case OFP_READ:
        return OFP_ACCESS_REMOTE_READ;
    case OFP_WRITE:
    case OFP_ATOMIC:
        return OFP_ACCESS_REMOTE_WRITE;
    default:
        return OFP_ACCESS_REMOTE_READ | (packet->atomic_op == OFP_ATOMIC_READ ? 0 : OFP_ACCESS_REMOTE_WRITE);
    }
}

static uint64_t event_of(const struct packet *packet)
{
    uint64_t flags = packet->operation == OFP_WRITE || packet->operation == OFP_ATOMIC ? OFP_COMPLETED_REMOTE_WRITE
                                                                                       : OFP_COMPLETED_REMOTE_READ;

    if (packet->operation >= OFP_ATOMIC)
        flags |= OFP_COMPLETED_ATOMIC;
    return flags | (packet->has_data ? OFP_COMPLETED_REMOTE_CQ_DATA : 0);
}

/* `memory`: the packet's part for this piece. */
static int serve_piece(struct packet *packet, const struct ofp_remote_access *access, char *memory)
{
    if (packet->operation >= OFP_ATOMIC)
        return fake_core->atomic_execute(access, packet->operation, packet->atomic_op, packet->datatype, memory,
                                         memory + packet->length, memory);
    if (packet->operation == OFP_READ)
        memcpy(memory, access->memory, access->length);
    else
        memcpy(access->memory, memory, access->length);
    return 0;
}

void fake_remote_serve(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct packet *packet)
{
    struct ofp_remote_access accesses[OFP_SEGMENT_LIMIT];
    struct ofp_region *region = NULL;
    uint32_t rights = rights_of(packet), held = 0;
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
    packet_finish(packet, result ? OFP_EREMOTE : 0);
}

/* Back at the initiator, and well: hand over what was read. */
void fake_remote_answered(const struct packet *packet, const struct ofp_transfer *transfer)
{
    uint64_t moved = 0;

    if (packet->operation == OFP_FETCH_ATOMIC || packet->operation == OFP_COMPARE_ATOMIC) {
        if (packet->length)
            memcpy(transfer->result, packet->payload, packet->length);
        return;
    }
    for (uint32_t i = 0; packet->operation == OFP_READ && i < transfer->iov_count; i++) {
        if (transfer->iov[i].iov_len)
            memcpy(transfer->iov[i].iov_base, packet->payload + moved, transfer->iov[i].iov_len);
        moved += transfer->iov[i].iov_len;
    }
}
