/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each part names all memory of its operation. All of it is checked before any is touched. No state is stored between
 * parts, so a peer may be lost between any two.
 */
#include "rdm/transfer/serve.h"

#include <errno.h>

#include "ofipy/iov.h"
#include "rdm/transfer/path.h"

/* Execute the operation on the memory of one piece, `done` bytes into the part. */
static int serve_bytes(const struct ofp_core *core, const struct ofpi_rdm_packet *packet,
                       const struct ofp_remote_access *access, uint64_t done, uint8_t *results)
{
    const uint8_t *operand = packet->payload + done;

    switch (packet->op) {
    case OFP_READ:
        ofp_memory_copy(results + done, access->memory, access->length);
        return 0;
    case OFP_WRITE:
        ofp_memory_copy(access->memory, operand, access->length);
        return 0;
    default:
        return core->atomic_execute(access, packet->op, packet->atomic_op, packet->datatype, operand,
                                    operand + packet->length, results + done);
    }
}

/* Execute the part's share of each piece. */
static int serve_pieces(const struct ofp_core *core, const struct ofpi_rdm_packet *packet,
                        const struct ofp_remote_access *accesses, uint8_t *results)
{
    uint64_t skip = packet->offset, left = packet->length, done = 0;
    int result = 0;

    for (uint32_t i = 0; !result && left && i < packet->count; i++) {
        struct ofp_remote_access here = {.region = accesses[i].region};

        if (skip >= packet->pieces[i].length) {
            skip -= packet->pieces[i].length;
            continue;
        }
        here.length = packet->pieces[i].length - skip < left ? packet->pieces[i].length - skip : left;
        here.memory = accesses[i].memory + skip;
        result = serve_bytes(core, packet, &here, done, results);
        skip = 0;
        left -= here.length;
        done += here.length;
    }
    return result;
}

/* 0, or a negative errno with which the access is refused. `region` gets the first region, for the event. */
static int serve_part(struct ofpi_rdm_endpoint *endpoint, const struct ofpi_rdm_packet *packet, uint8_t *results,
                      struct ofp_region **region)
{
    struct ofp_remote_access accesses[OFP_SEGMENT_LIMIT];
    uint32_t rights = ofp_operation_remote_access(packet->op, packet->atomic_op), acquired = 0;
    int result = 0;

    while (!result && acquired < packet->count) {
        const struct ofpi_rdm_piece *piece = &packet->pieces[acquired];

        result =
            ofp_remote_access(endpoint->base, piece->key, piece->address, piece->length, rights, &accesses[acquired]);
        acquired += !result;
    }
    if (!result)
        result = serve_pieces(endpoint->core, packet, accesses, results);
    if (!result)
        *region = accesses[0].region;
    for (uint32_t i = 0; i < acquired; i++)
        endpoint->core->remote_release(&accesses[i]);
    return result;
}

static void report_remote_access(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet,
                                 struct ofp_region *region)
{
    uint64_t flags = ofp_operation_row(packet->op)->event, total = 0;

    if (packet->flags & OFPI_RDM_HAS_DATA)
        flags |= OFP_COMPLETED_REMOTE_CQ_DATA;
    for (uint32_t i = 0; i < packet->count; i++)
        total += packet->pieces[i].length;
    ofp_remote_event(path->endpoint->base, path->base.peer, region, flags, packet->data, total);
}

int ofpi_rdm_remote_serve(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet)
{
    bool reads = ofp_operation_is(packet->op, OFP_READS);
    struct ofpi_rdm_packet answer = {.kind = OFPI_RDM_ANSWER, .id = packet->id, .offset = packet->offset};
    struct ofpi_packet *leaving;
    struct ofp_region *region = NULL;
    uint8_t *results;
    int result;

    if (packet->length > path->packet_size - ofpi_rdm_header_compute_size(OFPI_RDM_ANSWER, 0)) {
        ofpi_rdm_path_mark_failed(path, EPROTO, "it asked for more than fits an answer");
        return 0;
    }
    /* The path is over: nobody reads the answer. */
    if (path->state != OFPI_RDM_UP)
        return 0;
    leaving = ofpi_rdm_packet_build(path, &answer, &results);
    if (!leaving)
        return -EAGAIN;
    result = serve_part(path->endpoint, packet, results, &region);
    if (result) {
        answer.error = OFP_EREMOTE;
        answer.reason = -result;
        ofpi_rdm_encode(&answer, leaving->bytes);
    } else if (packet->flags & OFPI_RDM_LAST) {
        report_remote_access(path, packet, region);
    }
    ofpi_rdm_packet_send(path, leaving, reads && !result ? packet->length : 0, false);
    return 0;
}
