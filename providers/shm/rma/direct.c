/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct RMA and atomics: the peer's process does nothing. Its region table says where the memory is, and what peers may do
 * with it.
 *
 *     mapped      the region is in an arena of the peer that is mapped here: copy, or update (atomic.h)
 *     attach      process_vm_readv, process_vm_writev
 *
 * An operation on memory that the table does not list, or that is not accessible from here, is requested of the peer: the
 * peer's core decides, and reports the reason of a refusal. So is an operation that has to take effect behind earlier messages
 * (info.msg_order has WAS or RAS). Called by posts and by progress, under the domain's lock.
 */
#include "rma/direct.h"

#include <errno.h>

#include "base/copy.h"
#include "base/pending.h"
#include "link/attach.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/link.h"
#include "link/table.h"
#include "memory/arena.h"
#include "ofipy/iov.h"
#include "rma/atomic.h"
#include "rma/remote.h"
#include "rma/request.h"
#include "rma/store.h"

/* Result beside 0 and errors: the operation has to be requested of the peer. */
#define NOT_DIRECT 2

/* Bytes up to which an operation takes the short path to the last region. */
#define AT_ONCE 4096

/* After this many requests in a row whose memory was directly accessible, the next operation waits for the answers. */
#define DIRECT_ENOUGH 8

/* The resolved memory of an operation. */
struct place {
    struct shm_target target;
    bool mapped; /* `pieces` are addresses of this process; otherwise of the peer's */
    struct iovec pieces[OFP_SEGMENT_LIMIT];
};

static bool is_atomic(const struct ofp_transfer *transfer)
{
    return ofp_operation_is(transfer->op->op, OFP_ATOMIC_KIND);
}

/* --------------------------------------------------------------------------------------------------------- finding */

/* Resolve the region's first byte, preferably to a mapping. NULL: not accessible. */
static char *resolve_region(struct shm_link *link, const struct shm_target *target, bool *mapped)
{
    char *memory = NULL;

    *mapped = true;
    if (link->process == &link->endpoint->domain->self)
        return (char *)(uintptr_t)target->address;
    if (target->arena)
        memory = shm_foreign_arena_resolve(link, target->arena, target->arena_offset, target->length);
    /*
     * While the answer of an arena request is outstanding, attach would keep a program from making the progress that
     * receives the answer: its operations end in their posts. So the operation is requested of the peer.
     */
    if (memory || !link->attach || (target->arena && shm_foreign_arena_is_requested(link, target->arena)))
        return memory;
    *mapped = false;
    /*
     * An address range beyond the last address is an error of the peer, which reports it itself when it gets the
     * request.
     */
    return target->length <= UINTPTR_MAX - target->address ? (char *)(uintptr_t)target->address : NULL;
}

/* Resolve all memory of an operation before any is accessed. False: the operation has to be requested of the peer. */
static bool resolve_transfer(struct shm_link *link, const struct ofp_transfer *transfer, struct place *place)
{
    const struct shm_region_entry *table = shm_table_resolve(link);
    struct shm_target *target = &place->target;
    char *memory;

    if (!table || !shm_table_find(table, transfer->remote[0].key, target) ||
        ofp_operation_remote_access(transfer->op->op, transfer->op->atomic_op) & ~target->access)
        return false;
    memory = resolve_region(link, target, &place->mapped);
    if (!memory)
        return false;
    if (place->mapped)
        link->last_region = (struct shm_last_region){memory, transfer->remote[0].key, *target};
    for (uint32_t i = 0; i < transfer->remote_count; i++) {
        const struct ofp_remote_segment *piece = &transfer->remote[i];

        /* A visit is to one region only. */
        if (piece->key != transfer->remote[0].key || piece->length > target->length ||
            piece->offset > target->length - piece->length)
            return false;
        place->pieces[i] = (struct iovec){memory + piece->offset, piece->length};
    }
    return !is_atomic(transfer) || (place->mapped && shm_atomic_is_ours(link, transfer, target, place->pieces));
}

/* ---------------------------------------------------------------------------------------------------------- moving */

/* Between a layout and `count` mapped pieces with `length` bytes. */
static __attribute__((noinline)) void copy_mapped_layout(const struct ofp_transfer *transfer, uint64_t offset,
                                                         const struct iovec *remote, uint32_t count, uint64_t length)
{
    const struct ofp_layout *layout = ofp_layout_of_iov(transfer->iov);
    struct ofp_iov_walk walk = {remote, count, 0, length};
    struct iovec piece;

    for (; ofp_iov_next(&walk, &piece); offset += piece.iov_len)
        if (transfer->op->op == OFP_WRITE)
            ofp_layout_gather(layout, offset, piece.iov_base, piece.iov_len);
        else
            ofp_layout_scatter(layout, offset, piece.iov_base, piece.iov_len);
}

static __attribute__((noinline)) enum shm_attach move_layout(struct shm_link *link, const struct ofp_transfer *transfer,
                                                             const struct place *place, uint64_t offset,
                                                             const struct iovec *remote, uint32_t count,
                                                             uint64_t length)
{
    if (!place->mapped)
        return shm_attach_copy_layout(link, ofp_layout_of_iov(transfer->iov), offset, remote, count, 0, length,
                                      transfer->op->op == OFP_WRITE);
    copy_mapped_layout(transfer, offset, remote, count, length);
    return SHM_ATTACH_DONE;
}

static enum shm_attach move_part(struct shm_link *link, const struct ofp_transfer *transfer, const struct place *place,
                                 uint64_t offset, uint64_t length)
{
    struct iovec local[SHM_ATTACH_ROOM], remote[SHM_ATTACH_ROOM];
    uint32_t local_count = ofp_iov_cut(local, OFP_SEGMENT_LIMIT, transfer->iov, transfer->iov_count, offset, length);
    uint32_t remote_count =
        ofp_iov_cut(remote, OFP_SEGMENT_LIMIT, place->pieces, transfer->remote_count, offset, length);
    bool out = transfer->op->op == OFP_WRITE;

    if (!length)
        return SHM_ATTACH_DONE;
    if (is_atomic(transfer)) {
        shm_atomic_execute(transfer, place->pieces);
        return SHM_ATTACH_DONE;
    }
    if (SHM_UNLIKELY(transfer->iov_count == OFP_LAYOUT))
        return move_layout(link, transfer, place, offset, remote, remote_count, length);
    if (place->mapped) {
        if (out)
            shm_store_pieces(link, remote, local, length);
        else
            shm_pieces_copy(local, remote, length, false);
        return SHM_ATTACH_DONE;
    }
    return out ? shm_attach_write(link, local, local_count, remote, remote_count, length)
               : shm_attach_read(link, local, local_count, remote, remote_count, length);
}

/*
 * Move a part of an operation within a visit. 0; NOT_DIRECT; -EAGAIN: the peer ends; -EFAULT; -OFP_ENOKEY: an atomic
 * that must not be repeated.
 */
static int move_part_in_visit(struct shm_link *link, const struct ofp_transfer *transfer, const struct place *place,
                              uint64_t offset, uint64_t length)
{
    enum shm_attach result;

    if (!shm_visit_start(link, &place->target))
        return NOT_DIRECT;
    OFP_SHM_STEP(visiting);
    result = move_part(link, transfer, place, offset, length);
    OFP_SHM_STEP(visited);
    /* The region was closed meanwhile: the owner may not have waited until the visit's end. */
    if (!shm_visit_end(link, &place->target))
        return is_atomic(transfer) ? -OFP_ENOKEY : NOT_DIRECT;
    switch (result) {
    case SHM_ATTACH_DONE:
        return 0;
    case SHM_ATTACH_FORBIDDEN:
        link->attach = false;
        return NOT_DIRECT;
    case SHM_ATTACH_GONE:
        shm_link_mark_ended(link, SHM_END_DEAD);
        return -EAGAIN;
    default:
        return -EFAULT;
    }
}

/* --------------------------------------------------------------------------------------------------------- notices */

static bool needs_notice(const struct shm_link *link, const struct ofp_transfer *transfer,
                         const struct shm_target *target)
{
    return transfer->op->flags & OFP_REMOTE_CQ_DATA || target->access & SHM_ENTRY_EVENTS ||
           ofp_load_relaxed(&link->ring.header->status) & SHM_EVENTS;
}

static void send_notice(struct shm_link *link, const struct ofp_transfer *transfer, const struct shm_target *target)
{
    bool has_data = transfer->op->flags & OFP_REMOTE_CQ_DATA;

    shm_control_send(link, SHM_NOTICE, 0,
                     &(struct shm_control_fields){.id = target->id,
                                                  .length = transfer->length,
                                                  .data = transfer->op->data,
                                                  .completed = shm_event_of(transfer->op->op, has_data)});
    OFP_SHM_STEP(noticed);
    /* Other senders filled the ring: later operations wait behind the queued notice. */
    if (!ofp_list_empty(&link->controls))
        link->ready = false;
}

bool shm_notice_arrived(struct shm_link *link, const struct shm_content *content)
{
    const struct shm_control_fields *fields = &content->control;
    struct ofp_domain *domain = link->endpoint->domain->base;
    uint64_t side = fields->completed & ~(uint64_t)OFP_COMPLETED_REMOTE_CQ_DATA;

    side &= ~(uint64_t)OFP_COMPLETED_ATOMIC;
    if ((side != OFP_COMPLETED_REMOTE_READ && side != OFP_COMPLETED_REMOTE_WRITE) || fields->id > UINT32_MAX)
        return false;
    ofp_remote_event(link->endpoint->base, link->peer, shm_core->region_by_id(domain, (uint32_t)fields->id),
                     fields->completed, fields->data, fields->length);
    return true;
}

/* --------------------------------------------------------------------------------------------------------- posting */

/* Whether a small operation accesses the same region as the last one, by its entry at that time. */
static bool is_last_region(const struct shm_link *link, const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    const struct ofp_remote_segment *there = &transfer->remote[0];
    const struct shm_target *target = &link->last_region.target;

    return link->last_region.memory && there->key == link->last_region.key && transfer->remote_count == 1 &&
           transfer->iov_count == 1 && transfer->length <= AT_ONCE && transfer->length <= target->length &&
           there->offset <= target->length - transfer->length &&
           !(ofp_operation_remote_access(op->op, op->atomic_op) & ~target->access) &&
           !needs_notice(link, transfer, target);
}

/* NOT_DIRECT: another region, or the visit finds that the region is closed. */
static int post_to_last_region(struct shm_link *link, const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    const struct shm_target *target = &link->last_region.target;
    struct iovec piece = {.iov_len = transfer->length};

    if (!is_last_region(link, transfer))
        return NOT_DIRECT;
    piece.iov_base = link->last_region.memory + transfer->remote[0].offset;
    if ((is_atomic(transfer) && !shm_atomic_is_ours(link, transfer, target, &piece)) || !shm_visit_start(link, target))
        return NOT_DIRECT;
    OFP_SHM_STEP(visiting);
    if (op->op == OFP_WRITE)
        ofp_memory_copy(piece.iov_base, transfer->iov[0].iov_base, piece.iov_len);
    else if (op->op == OFP_READ)
        ofp_memory_copy(transfer->iov[0].iov_base, piece.iov_base, piece.iov_len);
    else
        shm_atomic_execute(transfer, &piece);
    OFP_SHM_STEP(visited);
    if (shm_visit_end(link, target))
        return OFP_POST_DONE;
    return is_atomic(transfer) ? -OFP_ENOKEY : NOT_DIRECT;
}

/* End the operation with the error that the owner would report: the region is closed. */
static int fail_closed_region(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer)
{
    struct ofp_pending *pending = ofp_transfer_retain(base, link->peer, transfer);

    if (!pending)
        return -ENOMEM;
    ofp_transfer_complete(pending, OFP_EREMOTE, OFP_ENOKEY);
    return OFP_POST_PENDING;
}

static int post_direct(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer)
{
    struct ofp_pending *pending;
    struct place place;
    bool notice;
    int result;

    result = post_to_last_region(link, transfer);
    if (result == -OFP_ENOKEY)
        return fail_closed_region(base, link, transfer);
    if (result != NOT_DIRECT)
        return result;
    if (!resolve_transfer(link, transfer, &place))
        return NOT_DIRECT;
    notice = needs_notice(link, transfer, &place.target);
    if (notice && !shm_ring_has_space(&link->ring))
        return -EAGAIN;
    if (transfer->length > SHM_PIECE) {
        pending = ofp_transfer_retain(base, link->peer, transfer);
        if (!pending)
            return -EAGAIN;
        pending->provider_data[SHM_PENDING_STATE] = SHM_PENDING_DIRECT;
        shm_remote_start(link, pending);
        return OFP_POST_PENDING;
    }
    result = move_part_in_visit(link, transfer, &place, 0, transfer->length);
    if (result == -OFP_ENOKEY)
        return fail_closed_region(base, link, transfer);
    if (result)
        return result;
    if (notice)
        send_notice(link, transfer, &place.target);
    return OFP_POST_DONE;
}

/*
 * The peer still has to answer a request, so this operation must not be executed directly: it would overtake the
 * requests. It is requested too, unless several in a row could have been direct: then it waits until all answers are
 * here. So a window that is never drained changes to direct operations once the memory is mapped, and a mix of direct
 * and requested operations continues without a pause at each change.
 */
static int post_behind_requests(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer)
{
    struct place place;

    if (!resolve_transfer(link, transfer, &place))
        link->direct_count = 0;
    else if (link->direct_count == DIRECT_ENOUGH)
        return -EAGAIN;
    else
        link->direct_count++;
    return shm_request_post(base, link, transfer);
}

int shm_remote_post(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer)
{
    int result;

    if (base->info->msg_order & (OFP_ORDER_WAS | OFP_ORDER_RAS))
        return shm_request_post(base, link, transfer);
    if (link->unanswered)
        return post_behind_requests(base, link, transfer);
    result = post_direct(base, link, transfer);
    if (result != NOT_DIRECT)
        return result;
    /* A direct operation was tried, so counting starts again. */
    link->direct_count = 0;
    return shm_request_post(base, link, transfer);
}

/* ------------------------------------------------------------------------------------- operations in progress */

static int progress_direct_operation(struct shm_link *link, struct ofp_pending *pending)
{
    const struct ofp_transfer *transfer = &pending->transfer;
    uint64_t *moved = &pending->provider_data[SHM_PENDING_OFFSET];
    uint64_t length = transfer->length - *moved < SHM_PIECE ? transfer->length - *moved : SHM_PIECE;
    struct place place;
    int result = NOT_DIRECT;

    OFP_CHECK(pending->provider_data[SHM_PENDING_STATE] == SHM_PENDING_DIRECT && *moved < transfer->length);
    if (!link->up)
        return 0;
    if (resolve_transfer(link, transfer, &place))
        result = move_part_in_visit(link, transfer, &place, *moved, length);
    if (result == NOT_DIRECT) {
        shm_request_resume(link, pending);
        return 1;
    }
    if (result == -EAGAIN)
        return 0;
    *moved += length;
    if (!result && *moved < transfer->length)
        return 1;
    shm_remote_end(link);
    if (!result && needs_notice(link, transfer, &place.target))
        send_notice(link, transfer, &place.target);
    ofp_transfer_complete(pending, -result, 0);
    return 1;
}

int shm_remotes_progress(struct shm_endpoint *endpoint)
{
    struct ofp_list *node, *following;
    int events = 0;

    OFP_LIST_EACH(node, following, &endpoint->remotes) {
        struct shm_link *link = OFP_CONTAINER_OF(node, struct shm_link, remotes);

        if (link->remote_operation->provider_data[SHM_PENDING_STATE] == SHM_PENDING_DIRECT)
            events += progress_direct_operation(link, link->remote_operation);
        else
            events += shm_request_progress(link, link->remote_operation);
    }
    if (ofp_list_empty(&endpoint->remotes))
        endpoint->work &= ~(uint32_t)SHM_WORK_REMOTE;
    return events;
}

bool shm_remotes_can_move(struct shm_endpoint *endpoint)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &endpoint->remotes) {
        struct shm_link *link = OFP_CONTAINER_OF(node, struct shm_link, remotes);
        const struct ofp_pending *pending = link->remote_operation;

        if (link->up && (pending->provider_data[SHM_PENDING_STATE] == SHM_PENDING_DIRECT ||
                         pending->provider_data[SHM_PENDING_ERROR] ||
                         (shm_ring_has_space(&link->ring) && shm_bounce_collect(link))))
            return true;
    }
    return false;
}
