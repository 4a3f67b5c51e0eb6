/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver's side of announced messages: move the payload once a receive has matched, by one of three copy methods.
 *
 *     mapped      the sender's memory is in an arena that is mapped here: copy
 *     pipelined   request fragments with CLEAR; the sender fills bounce buffers (push.c) while the receiver empties them:
 *                 the fastest method while both are awake
 *     attached    process_vm_readv from the sender's address space, which needs no action of the sender
 *
 * Mapped and attached moves go in pieces of SHM_PIECE, the first piece at once, the others one per call of progress. When a
 * sender stops sending fragments (presence.c), attach moves the missing bytes. A pull ends with DONE to the sender. Called
 * by the core when a receive matches, and by progress, under the domain's lock.
 */
#include "message/pull.h"

#include <errno.h>
#include <stdlib.h>

#include "base/copy.h"
#include "link/attach.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/link.h"
#include "link/publish.h"
#include "memory/arena.h"
#include "message/cost.h"
#include "message/method.h"
#include "message/presence.h"
#include "ofipy/iov.h"

/* Index in ofp_receive.provider_data of the struct shm_pull. */
enum { RECEIVE_PULL };

/*
 * The move of one payload. Owned by endpoint->pulls, or by endpoint->awaited where only the sender can move the
 * payload. Invariant: offset <= receive->length; the link's presence counts the pull while `method` is
 * OFP_MOVED_PIPELINED.
 */
struct shm_pull {
    struct ofp_list node; /* pulls are served in turn */
    struct shm_link *link;
    struct ofp_receive *receive;
    uint64_t offset; /* bytes moved */
    enum ofp_moved method;
    struct shm_cost cost; /* the measurement of the first method */
    bool deferred;        /* not started, since a trial of the pipeline runs */
    const char *mapped;
    bool requested, fetched; /* fragments were requested; attach has moved some bytes */
    uint32_t remote_count;   /* ATTACH */
    struct iovec remote[OFP_SEGMENT_LIMIT];
};

enum progress {
    PULL_MORE,
    PULL_WAITS, /* for fragments */
    PULL_FINISHED,
    PULL_FORBIDDEN, /* attach is not allowed after all */
    PULL_LOST,      /* the sender is dead; the loss of the peer ends the receive */
    PULL_FAILED     /* the memory cannot be read */
};

static void send_done(struct shm_link *link, const struct ofp_receive *receive, int error)
{
    OFP_SHM_STEP(before_done);
    shm_control_send(link, SHM_DONE, 0,
                     &(struct shm_control_fields){.id = receive->message.provider_data[SHM_DATA_ID], .error = error});
    OFP_SHM_STEP(after_done);
}

static void set_copy_method(struct shm_pull *pull, enum ofp_moved method)
{
    if (pull->method == OFP_MOVED_PIPELINED)
        shm_presence_remove_message(pull->link);
    pull->method = method;
    if (method == OFP_MOVED_PIPELINED)
        shm_presence_add_message(pull->link);
}

static uint32_t count_sender_pieces(const struct shm_pull *pull)
{
    return (uint8_t)(pull->receive->message.provider_data[SHM_DATA_PLACE] >> 8);
}

/* ---------------------------------------------------------------------------------------------------------- attach */

static enum progress convert_attach_result(enum shm_attach result)
{
    switch (result) {
    case SHM_ATTACH_DONE:
        return PULL_FINISHED;
    case SHM_ATTACH_FORBIDDEN:
        return PULL_FORBIDDEN;
    case SHM_ATTACH_GONE:
        return PULL_LOST;
    default:
        return PULL_FAILED;
    }
}

static enum progress read_remote_piece(struct shm_pull *pull, uint64_t length)
{
    struct iovec local[SHM_ATTACH_ROOM], remote[SHM_ATTACH_ROOM];
    uint32_t local_count, remote_count;

    if (SHM_UNLIKELY(pull->receive->iov_count == OFP_LAYOUT))
        return convert_attach_result(shm_attach_copy_layout(pull->link, ofp_layout_of_iov(pull->receive->iov),
                                                            pull->offset, pull->remote, pull->remote_count,
                                                            pull->offset, length, false));
    local_count =
        ofp_iov_cut(local, OFP_SEGMENT_LIMIT, pull->receive->iov, pull->receive->iov_count, pull->offset, length);
    remote_count = ofp_iov_cut(remote, OFP_SEGMENT_LIMIT, pull->remote, pull->remote_count, pull->offset, length);
    return convert_attach_result(shm_attach_read(pull->link, local, local_count, remote, remote_count, length));
}

/* Read the sender's list of pieces, if there are several. */
static enum progress read_sender_list(struct shm_pull *pull, uint64_t address, uint32_t count)
{
    uint64_t size = count * sizeof(struct iovec), total;
    struct iovec local[2] = {{pull->remote, size}}, remote[2] = {{(void *)(uintptr_t)address, size}};
    enum progress result = convert_attach_result(shm_attach_read(pull->link, local, 1, remote, 1, size));

    if (result != PULL_FINISHED)
        return result;
    pull->remote_count = count;
    return ofp_iov_length(pull->remote, count, &total) && total == pull->receive->message.length ? PULL_MORE
                                                                                                 : PULL_FAILED;
}

static enum progress start_attach(struct shm_pull *pull)
{
    const struct ofp_message *message = &pull->receive->message;
    uint64_t address = message->provider_data[SHM_DATA_ADDRESS];
    uint32_t iov_count = count_sender_pieces(pull);

    OFP_CHECK(iov_count <= OFP_SEGMENT_LIMIT);
    set_copy_method(pull, OFP_MOVED_ATTACHED);
    if (iov_count > 1)
        return read_sender_list(pull, address, iov_count);
    pull->remote[0] = (struct iovec){(void *)(uintptr_t)address, message->length};
    pull->remote_count = 1;
    return PULL_MORE;
}

/* ------------------------------------------------------------------------------------------------------- fragments */

static enum progress request_fragments(struct shm_pull *pull)
{
    struct shm_link *link = pull->link;

    set_copy_method(pull, OFP_MOVED_PIPELINED);
    pull->requested = true;
    OFP_SHM_STEP(before_clear);
    shm_control_send(link, SHM_CLEAR, 0,
                     &(struct shm_control_fields){.id = pull->receive->message.provider_data[SHM_DATA_ID],
                                                  .receive = pull->receive->id,
                                                  .length = pull->receive->length});
    OFP_SHM_STEP(after_clear);
    return PULL_WAITS;
}

static bool can_expect_fragments(const struct shm_pull *pull)
{
    return shm_presence_check(pull->link,
                              shm_cost_compute(&pull->cost, OFP_MOVED_ATTACHED, pull->receive->length - pull->offset));
}

/* ----------------------------------------------------------------------------------------------------------- pulls */

static void copy_mapped(const struct shm_pull *pull, uint64_t length)
{
    for (uint64_t offset = pull->offset, end = offset + length, part = 0; offset < end; offset += part) {
        part = end - offset < SHM_COPY_SLICE ? end - offset : SHM_COPY_SLICE;
        ofp_receive_write(pull->receive, offset, pull->mapped + offset, part);
    }
}

static enum progress move_piece(struct shm_pull *pull)
{
    uint64_t length = pull->receive->length - pull->offset;
    enum progress result = PULL_FINISHED;

    if (length > SHM_PIECE)
        length = SHM_PIECE;
    if (length >= SHM_WAKE_AHEAD && pull->offset + length == pull->receive->length)
        shm_sender_wake_ahead(pull->link);
    OFP_SHM_STEP(pull_piece);
    if (pull->method == OFP_MOVED_MAPPED)
        copy_mapped(pull, length);
    else
        result = read_remote_piece(pull, length);
    if (result != PULL_FINISHED)
        return result;
    pull->offset += length;
    pull->link->endpoint->moved += length;
    return pull->offset < pull->receive->length ? PULL_MORE : PULL_FINISHED;
}

/* Attach is not allowed. Requested fragments continue to arrive, unless attach has already moved some bytes. */
static enum progress handle_forbidden_attach(struct shm_pull *pull)
{
    pull->link->attach = false;
    shm_cost_discard(pull->link, &pull->cost);
    if (!pull->requested)
        return request_fragments(pull);
    set_copy_method(pull, OFP_MOVED_PIPELINED);
    return pull->fetched ? PULL_FAILED : PULL_WAITS;
}

/* A layout of the sender is out of reach for attach. */
static bool can_attach(const struct shm_pull *pull)
{
    return pull->link->attach && count_sender_pieces(pull) != SHM_SENDER_MOVES;
}

/* The sender's arena that contains the payload; 0: none. */
static uint32_t arena_of_pull(const struct shm_pull *pull)
{
    return (uint32_t)(pull->receive->message.provider_data[SHM_DATA_PLACE] >> 32);
}

static bool needs_deferral(const struct shm_pull *pull)
{
    return shm_cost_needs_deferral(pull->link, pull->receive->length, arena_of_pull(pull) != 0);
}

static enum progress start_pull(struct shm_pull *pull)
{
    const struct ofp_message *message = &pull->receive->message;
    uint32_t arena = arena_of_pull(pull);
    enum ofp_moved method;

    if (arena)
        pull->mapped = shm_foreign_arena_resolve(pull->link, arena, message->provider_data[SHM_DATA_ARENA_OFFSET],
                                                 message->length);
    pull->deferred = false;
    method =
        shm_cost_start(pull->link, &pull->cost, pull->receive->length, arena != 0, shm_sender_is_asleep(pull->link),
                       shm_methods_find(pull->link, pull->mapped, can_attach(pull)));
    if (SHM_UNLIKELY(pull->receive->iov_count == OFP_LAYOUT || count_sender_pieces(pull) == SHM_SENDER_MOVES))
        /* Layouts cost more than other memory, and say nothing about it. */
        shm_cost_discard(pull->link, &pull->cost);
    switch (method) {
    case OFP_MOVED_PIPELINED:
        return request_fragments(pull);
    case OFP_MOVED_ATTACHED:
        return start_attach(pull);
    default:
        set_copy_method(pull, OFP_MOVED_MAPPED);
        return PULL_MORE;
    }
}

static enum progress advance_pull(struct shm_pull *pull)
{
    enum progress result = PULL_MORE;

    if (pull->deferred && needs_deferral(pull))
        return PULL_WAITS;
    if (pull->deferred) {
        result = start_pull(pull);
        if (result != PULL_MORE)
            return result == PULL_FORBIDDEN ? handle_forbidden_attach(pull) : result;
    } else if (pull->method == OFP_MOVED_PIPELINED) {
        if (can_expect_fragments(pull))
            return PULL_WAITS;
        result = start_attach(pull);
    }
    if (result == PULL_MORE)
        result = move_piece(pull);
    if (result == PULL_FORBIDDEN)
        return handle_forbidden_attach(pull);
    pull->fetched = true;
    if (pull->requested)
        pull->link->overtaken = true;
    return result;
}

static void free_pull(struct shm_pull *pull)
{
    ofp_list_remove(&pull->node);
    shm_cost_discard(pull->link, &pull->cost);
    if (pull->method == OFP_MOVED_PIPELINED)
        shm_presence_remove_message(pull->link);
    pull->receive->provider_data[RECEIVE_PULL] = 0;
    free(pull);
}

/* End the pull; the receive belongs to the core again. */
static void complete_pull(struct shm_pull *pull, int error)
{
    struct shm_link *link = pull->link;
    struct ofp_receive *receive = pull->receive;

    if (!error) {
        OFP_CHECK(pull->offset == receive->length);
        shm_cost_end(link, &pull->cost);
        ofp_payload_moved(receive, pull->method);
    }
    free_pull(pull);
    send_done(link, receive, error);
    ofp_receive_complete(receive, error, 0);
}

/* End a pull whose payload the receiver moved. */
static void end_pull(struct shm_pull *pull, enum progress result)
{
    struct shm_link *link = pull->link;

    if (result == PULL_LOST) {
        free_pull(pull);
        shm_link_mark_ended(link, SHM_END_DEAD);
        return;
    }
    /*
     * A sender that began to close before the move ended may have reused its memory. Pairs with shm_endpoint_close. The
     * loss of the peer ends the receive.
     */
    ofp_read_fence();
    if (ofp_load_acquire(&link->ring.header->status) & (SHM_CLOSING | SHM_CLOSED)) {
        free_pull(pull);
        shm_link_mark_closing(link);
        return;
    }
    complete_pull(pull, result == PULL_FAILED ? EFAULT : 0);
}

/* After every step: put the pull into the list for its next step, or end it. */
static void schedule_pull(struct shm_pull *pull, enum progress result)
{
    struct shm_endpoint *endpoint = pull->link->endpoint;

    OFP_CHECK(pull->offset <= pull->receive->length);
    if (result != PULL_MORE && result != PULL_WAITS) {
        end_pull(pull, result);
        return;
    }
    ofp_list_remove(&pull->node);
    if (pull->method == OFP_MOVED_PIPELINED && !pull->deferred && !can_attach(pull)) {
        ofp_list_append(&endpoint->awaited, &pull->node);
        return;
    }
    ofp_list_append(&endpoint->pulls, &pull->node);
    endpoint->work |= SHM_WORK_PULLS;
}

static void create_pull(struct shm_link *link, struct ofp_receive *receive)
{
    struct shm_pull *pull = calloc(1, sizeof(*pull));
    enum progress result;

    if (!pull) {
        send_done(link, receive, ENOMEM);
        ofp_receive_complete(receive, ENOMEM, 0);
        return;
    }
    pull->link = link;
    pull->receive = receive;
    ofp_list_append(&link->endpoint->pulls, &pull->node);
    receive->provider_data[RECEIVE_PULL] = (uint64_t)(uintptr_t)pull;
    OFP_SHM_STEP(pull_started);
    pull->deferred = needs_deferral(pull);
    result = pull->deferred ? PULL_WAITS : start_pull(pull);
    if (result == PULL_MORE)
        result = advance_pull(pull);
    schedule_pull(pull, result == PULL_FORBIDDEN ? handle_forbidden_attach(pull) : result);
}

int shm_pulls_progress(struct shm_endpoint *endpoint)
{
    struct shm_pull *pull;
    enum progress result;

    if (ofp_list_empty(&endpoint->pulls)) {
        endpoint->work &= ~(uint32_t)SHM_WORK_PULLS;
        return 0;
    }
    pull = OFP_CONTAINER_OF(endpoint->pulls.next, struct shm_pull, node);
    result = advance_pull(pull);
    schedule_pull(pull, result);
    return result != PULL_WAITS;
}

static void free_link_pulls(struct ofp_list *list, const struct shm_link *link)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, list) {
        struct shm_pull *pull = OFP_CONTAINER_OF(node, struct shm_pull, node);

        if (pull->link == link)
            free_pull(pull);
    }
}

void shm_pulls_free(struct shm_link *link)
{
    free_link_pulls(&link->endpoint->pulls, link);
    free_link_pulls(&link->endpoint->awaited, link);
}

/* -------------------------------------------------------------------------------------------------------- receives */

static void receive_bounce(struct shm_link *link, struct ofp_receive *receive)
{
    uint64_t packed = receive->message.provider_data[SHM_DATA_ID];
    struct shm_bounce_fields fields = {.index = (uint32_t)(packed >> 32), .generation = (uint32_t)packed};

    if (receive->length)
        ofp_receive_write(receive, 0, shm_bounce_resolve(&link->segment, fields.index), receive->length);
    shm_bounce_return(link, &fields, false);
    ofp_receive_complete(receive, 0, 0);
}

void shm_receive_start(struct ofp_endpoint *base, struct ofp_receive *receive)
{
    struct shm_link *link = receive->message.peer ? shm_link_of(receive->message.peer) : NULL;

    (void)base;
    /* The link was closed here, and the payload is lost with it. */
    if (!link) {
        ofp_receive_complete(receive, ECANCELED, 0);
        return;
    }
    if ((receive->message.provider_data[SHM_DATA_PLACE] & 0xff) == SHM_PLACE_BOUNCE) {
        receive_bounce(link, receive);
        return;
    }
    if (receive->length) {
        create_pull(link, receive);
        return;
    }
    send_done(link, receive, 0);
    ofp_receive_complete(receive, 0, 0);
}

/* The pull of a receive for which fragments were requested; NULL: none, or the receive has ended. */
static struct shm_pull *find_fragment_pull(struct shm_link *link, uint64_t id)
{
    struct ofp_receive *receive = ofp_receive_find(link->peer, id);
    struct shm_pull *pull = receive ? (struct shm_pull *)(uintptr_t)receive->provider_data[RECEIVE_PULL] : NULL;

    return pull && pull->requested ? pull : NULL;
}

bool shm_fragment_arrived(struct shm_link *link, const struct shm_content *content)
{
    const struct shm_bounce_fields *fields = &content->bounce;
    struct shm_pull *pull = find_fragment_pull(link, fields->receive);
    bool late = pull ? pull->method != OFP_MOVED_PIPELINED : link->overtaken;

    if ((!pull && !late) || !shm_bounce_is_valid(link, fields, content->length))
        return false;
    if (!late && (fields->offset != pull->offset || content->length > pull->receive->length - pull->offset))
        return false;
    if (!late)
        ofp_receive_write(pull->receive, pull->offset, shm_bounce_resolve(&link->segment, fields->index),
                          content->length);
    shm_bounce_return(link, fields, true);
    shm_presence_count_fragment(link);
    OFP_SHM_STEP(fragment_received);
    if (late)
        return true;
    pull->offset += content->length;
    if (pull->offset == pull->receive->length)
        complete_pull(pull, 0);
    return true;
}

bool shm_abort_arrived(struct shm_link *link, const struct shm_content *content)
{
    struct shm_pull *pull = find_fragment_pull(link, content->control.id);

    if (!pull)
        return link->overtaken;
    if (pull->method == OFP_MOVED_PIPELINED)
        complete_pull(pull, content->control.error > 0 ? content->control.error : EIO);
    return true;
}
