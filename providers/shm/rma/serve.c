/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA and atomics that a peer requests. Each part names all memory of its operation, and all of it is checked before
 * any is accessed. No state remains between two parts, so that a peer may die between any two.
 */
#include "rma/serve.h"

#include <errno.h>
#include <string.h>

#include "link/bounce.h"
#include "link/control.h"
#include "ofipy/iov.h"
#include "rma/remote.h"

/* A part, copied out of the peer's buffer and checked. */
struct part {
    struct shm_request request;
    struct shm_remote_piece pieces[OFP_SEGMENT_LIMIT];
    uint64_t total; /* bytes of the whole operation */
    char *payload;  /* in the peer's buffer; results are written there too */
};

/* Copy and check a part. False: the peer broke the protocol. */
static bool read_part(struct shm_link *link, const struct shm_content *content, struct part *part)
{
    struct shm_request *shared;
    struct shm_request *request = &part->request;
    uint64_t room, header;

    if (!shm_bounce_is_valid(link, &content->bounce, content->length) || content->length < sizeof(*request))
        return false;
    shared = (struct shm_request *)(void *)shm_bounce_resolve(&link->segment, content->bounce.index);
    memcpy(request, shared, sizeof(*request));
    if (request->piece_count < 1 || request->piece_count > OFP_SEGMENT_LIMIT ||
        !ofp_operation_is(request->op, OFP_REMOTE))
        return false;
    header = sizeof(*request) + request->piece_count * sizeof(part->pieces[0]);
    header = (header + SHM_CACHE_LINE - 1) / SHM_CACHE_LINE * SHM_CACHE_LINE;
    room = content->length < header ? 0 : content->length - header;
    if (content->length < header || request->length > (ofp_operation_is(request->op, OFP_COMPARES) ? room / 2 : room))
        return false;
    memcpy(part->pieces, shm_pieces_of(shared), request->piece_count * sizeof(part->pieces[0]));
    part->payload = shm_bounce_resolve(&link->segment, content->bounce.index) + header;
    part->total = 0;
    for (uint32_t i = 0; i < request->piece_count; i++) {
        if (part->pieces[i].length > UINT64_MAX - part->total)
            return false;
        part->total += part->pieces[i].length;
    }
    return request->offset <= part->total && request->length <= part->total - request->offset;
}

/* Execute `count` bytes of a piece, `done` bytes into the part. */
static int serve_bytes(const struct part *part, const struct ofp_remote_access *access, uint64_t skip, uint64_t done,
                       uint64_t count)
{
    const struct shm_request *request = &part->request;
    struct ofp_remote_access here = {.region = access->region, .memory = access->memory + skip, .length = count};
    char *payload = part->payload + done;

    switch (request->op) {
    case OFP_READ:
        ofp_memory_copy(payload, here.memory, count);
        return 0;
    case OFP_WRITE:
        ofp_memory_copy(here.memory, payload, count);
        return 0;
    default:
        return shm_core->atomic_execute(&here, request->op, request->atomic_op, request->datatype, payload,
                                        payload + request->length, payload);
    }
}

/* Execute the part's share of each piece. */
static int serve_pieces(const struct part *part, const struct ofp_remote_access *accesses)
{
    uint64_t skip = part->request.offset, left = part->request.length, done = 0;
    int result = 0;

    for (uint32_t i = 0; !result && left && i < part->request.piece_count; i++) {
        uint64_t length = part->pieces[i].length, count;

        if (skip >= length) {
            skip -= length;
            continue;
        }
        count = length - skip < left ? length - skip : left;
        result = serve_bytes(part, &accesses[i], skip, done, count);
        skip = 0;
        left -= count;
        done += count;
    }
    return result;
}

/* Check and execute a part: 0 or a negative error. `region`: the first region, for the event. */
static int serve_part(struct shm_endpoint *endpoint, const struct part *part, struct ofp_region **region)
{
    const struct shm_request *request = &part->request;
    struct ofp_remote_access accesses[OFP_SEGMENT_LIMIT];
    uint32_t rights = ofp_operation_remote_access(request->op, request->atomic_op), count = 0;
    int result = 0;

    while (!result && count < request->piece_count) {
        const struct shm_remote_piece *piece = &part->pieces[count];

        result = ofp_remote_access(endpoint->base, piece->key, piece->offset, piece->length, rights, &accesses[count]);
        count += !result;
    }
    if (!result)
        result = serve_pieces(part, accesses);
    if (!result)
        *region = accesses[0].region;
    for (uint32_t i = 0; i < count; i++)
        shm_core->remote_release(&accesses[i]);
    return result;
}

bool shm_request_arrived(struct shm_link *link, const struct shm_content *content)
{
    struct ofp_region *region = NULL;
    struct part part;
    int result;

    if (!read_part(link, content, &part))
        return false;
    result = serve_part(link->endpoint, &part, &region);
    OFP_SHM_STEP(request_served);
    if (!result && content->flags & SHM_LAST)
        ofp_remote_event(link->endpoint->base, link->peer, region,
                         shm_event_of(part.request.op, content->flags & SHM_HAS_DATA), content->data, part.total);
    shm_control_send(
        link, SHM_ANSWER, 0,
        &(struct shm_control_fields){.receive = (uint64_t)content->bounce.index << 32 | content->bounce.generation,
                                     .error = result ? OFP_EREMOTE : 0,
                                     .provider_error = -result});
    OFP_SHM_STEP(request_answered);
    return true;
}
