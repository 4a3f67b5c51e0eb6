/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver's side of what was announced: move the payload once a receive has matched, by the best way there is.
 *
 *     mapped      the sender's memory lies in an arena that we have mapped: copy
 *     attach      process_vm_readv from the sender's address space
 *     fragments   ask with CLEAR; the sender fills bounce buffers (push.c)
 *
 * The first two go in pieces of SHM_PIECE, the first piece at once, the others one per call of progress.
 */
#include "message/pull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/iov.h"
#include "link/attach.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/link.h"
#include "link/publish.h"
#include "memory/arena.h"

/* Place and value in ofp_receive.provider_data of one whose payload comes as fragments; behind it the bytes arrived. */
enum { RECEIVE_WAY, RECEIVE_ARRIVED };
#define RECEIVE_FRAGMENTS 1

struct shm_pull {
    struct ofp_list node; /* in endpoint->pulls; each in its turn */
    struct shm_link *link;
    struct ofp_receive *receive;
    uint64_t offset;    /* bytes moved */
    const char *mapped; /* NULL: attach */
    uint32_t remote_count;
    struct iovec remote[OFP_SEGMENT_LIMIT];
};

enum progress {
    PULL_MORE,
    PULL_FINISHED,
    PULL_FRAGMENTS, /* attach is not allowed after all */
    PULL_LOST,      /* the sender is gone; the loss of the peer ends the receive */
    PULL_FAILED     /* the memory cannot be read */
};

static void send_done(struct shm_link *link, const struct ofp_receive *receive, int error)
{
    OFP_SHM_STEP(before_done);
    shm_control_send(link, SHM_DONE, 0,
                     &(struct shm_control_fields){.id = receive->message.provider_data[SHM_DATA_ID], .error = error});
    OFP_SHM_STEP(after_done);
}

/* ---------------------------------------------------------------------------------------------------------- attach */

static enum progress read_remote(const struct shm_link *link, struct iovec *local, uint32_t local_count,
                                 struct iovec *remote, uint32_t remote_count, uint64_t length)
{
    switch (shm_attach_read(link, local, local_count, remote, remote_count, length)) {
    case SHM_ATTACH_DONE:
        return PULL_FINISHED;
    case SHM_ATTACH_FORBIDDEN:
        return PULL_FRAGMENTS;
    case SHM_ATTACH_GONE:
        return PULL_LOST;
    default:
        return PULL_FAILED;
    }
}

static enum progress attach_piece(struct shm_pull *pull, uint64_t length)
{
    struct iovec local[OFP_SEGMENT_LIMIT + 1], remote[OFP_SEGMENT_LIMIT + 1];
    uint32_t local_count, remote_count;

    local_count = shm_cut(local, pull->receive->iov, pull->receive->iov_count, pull->offset, length);
    remote_count = shm_cut(remote, pull->remote, pull->remote_count, pull->offset, length);
    return read_remote(pull->link, local, local_count, remote, remote_count, length);
}

/* The sender's own list of pieces, where it has several. */
static enum progress fetch_list(struct shm_pull *pull, uint64_t address, uint32_t count)
{
    uint64_t size = count * sizeof(struct iovec), total = 0;
    struct iovec local[2] = {{pull->remote, size}}, remote[2] = {{(void *)(uintptr_t)address, size}};
    enum progress result = read_remote(pull->link, local, 1, remote, 1, size);

    if (result != PULL_FINISHED)
        return result;
    for (uint32_t i = 0; i < count; i++) {
        if (pull->remote[i].iov_len > pull->receive->message.length - total)
            return PULL_FAILED;
        total += pull->remote[i].iov_len;
    }
    pull->remote_count = count;
    return total == pull->receive->message.length ? PULL_MORE : PULL_FAILED;
}

/* ----------------------------------------------------------------------------------------------------------- pulls */

static void ask_for_fragments(struct shm_link *link, struct ofp_receive *receive)
{
    receive->provider_data[RECEIVE_WAY] = RECEIVE_FRAGMENTS;
    receive->provider_data[RECEIVE_ARRIVED] = 0;
    OFP_SHM_STEP(before_clear);
    shm_control_send(link, SHM_CLEAR, 0,
                     &(struct shm_control_fields){.id = receive->message.provider_data[SHM_DATA_ID],
                                                  .receive = receive->id,
                                                  .length = receive->length});
    OFP_SHM_STEP(after_clear);
}

static enum progress pull_piece(struct shm_pull *pull)
{
    uint64_t length = pull->receive->length - pull->offset;
    enum progress result = PULL_FINISHED;

    if (length > SHM_PIECE)
        length = SHM_PIECE;
    if (length >= SHM_WAKE_AHEAD && pull->offset + length == pull->receive->length)
        shm_wake_ahead(pull->link);
    OFP_SHM_STEP(pull_piece);
    if (pull->mapped)
        ofp_receive_write(pull->receive, pull->offset, pull->mapped + pull->offset, length);
    else
        result = attach_piece(pull, length);
    if (result != PULL_FINISHED)
        return result;
    pull->offset += length;
    pull->link->endpoint->moved += length;
    return pull->offset < pull->receive->length ? PULL_MORE : PULL_FINISHED;
}

/* After PULL_FINISHED and its like; the receive is the core's again, or waits for what comes. */
static void pull_end(const struct shm_pull *pull, enum progress result)
{
    struct shm_link *link = pull->link;
    int error = result == PULL_FAILED ? EFAULT : 0;

    if (result == PULL_LOST) {
        shm_link_dying(link, SHM_END_DEAD);
        return;
    }
    /*
     * A sender that began to close before we were done may have reused its memory. Pairs with shm_endpoint_close. The loss
     * of the peer will end the receive.
     */
    ofp_read_fence();
    if (ofp_load_acquire(&link->ring.header->status) & (SHM_CLOSING | SHM_CLOSED)) {
        shm_link_closing(link);
        return;
    }
    if (result == PULL_FRAGMENTS) {
        link->attach = false;
        ask_for_fragments(link, pull->receive);
        return;
    }
    send_done(link, pull->receive, error);
    ofp_receive_complete(pull->receive, error, 0);
}

/* Choose the way. PULL_MORE: go on with pieces. */
static enum progress pull_begin(struct shm_pull *pull)
{
    const struct ofp_message *message = &pull->receive->message;
    uint64_t way = message->provider_data[SHM_DATA_WAY], address = message->provider_data[SHM_DATA_ADDRESS];
    uint32_t iov_count = (uint8_t)(way >> 8), arena = (uint32_t)(way >> 32);

    pull->offset = 0;
    pull->mapped = NULL;
    if (arena)
        pull->mapped =
            shm_foreign_memory(pull->link, arena, message->provider_data[SHM_DATA_ARENA_OFFSET], message->length);
    if (pull->mapped)
        return PULL_MORE;
    if (!pull->link->attach)
        return PULL_FRAGMENTS;
    if (iov_count > 1)
        return fetch_list(pull, address, iov_count);
    pull->remote[0] = (struct iovec){(void *)(uintptr_t)address, message->length};
    pull->remote_count = 1;
    return PULL_MORE;
}

static void pull_start(struct shm_link *link, struct ofp_receive *receive)
{
    struct shm_pull pull, *kept;
    enum progress result;

    pull.link = link;
    pull.receive = receive;
    OFP_SHM_STEP(pull_started);
    result = pull_begin(&pull);
    if (result == PULL_MORE)
        result = pull_piece(&pull);
    if (result != PULL_MORE) {
        pull_end(&pull, result);
        return;
    }
    kept = malloc(sizeof(*kept));
    if (!kept) {
        send_done(link, receive, ENOMEM);
        ofp_receive_complete(receive, ENOMEM, 0);
        return;
    }
    *kept = pull;
    ofp_list_append(&link->endpoint->pulls, &kept->node);
    link->endpoint->work |= SHM_WORK_PULLS;
}

int shm_pulls_work(struct shm_endpoint *endpoint)
{
    struct ofp_list *node = ofp_list_pop(&endpoint->pulls);
    struct shm_pull *pull;
    enum progress result;

    if (node) {
        pull = OFP_CONTAINER_OF(node, struct shm_pull, node);
        result = pull_piece(pull);
        if (result == PULL_MORE) {
            ofp_list_append(&endpoint->pulls, node);
            return 1;
        }
        pull_end(pull, result);
        free(pull);
    }
    if (ofp_list_empty(&endpoint->pulls))
        endpoint->work &= ~(uint32_t)SHM_WORK_PULLS;
    return node != NULL;
}

void shm_pulls_drop(struct shm_link *link)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &link->endpoint->pulls) {
        struct shm_pull *pull = OFP_CONTAINER_OF(node, struct shm_pull, node);

        if (pull->link != link)
            continue;
        ofp_list_remove(node);
        free(pull);
    }
}

/* -------------------------------------------------------------------------------------------------------- receives */

static void receive_kept(struct ofp_receive *receive)
{
    struct shm_kept *kept = (struct shm_kept *)(uintptr_t)receive->message.provider_data[SHM_DATA_ID];

    if (receive->length)
        ofp_receive_write(receive, 0, kept->payload, receive->length);
    ofp_list_remove(&kept->node);
    free(kept);
    ofp_receive_complete(receive, 0, 0);
}

void shm_kept_drop(struct shm_link *link)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&link->kept)))
        free(OFP_CONTAINER_OF(node, struct shm_kept, node));
}

static void receive_bounce(struct shm_link *link, struct ofp_receive *receive)
{
    uint64_t packed = receive->message.provider_data[SHM_DATA_ID];
    struct shm_bounce_fields fields = {.index = (uint32_t)(packed >> 32), .generation = (uint32_t)packed};

    if (receive->length)
        ofp_receive_write(receive, 0, shm_bounce_memory(&link->segment, fields.index), receive->length);
    shm_bounce_free(link, &fields, false);
    ofp_receive_complete(receive, 0, 0);
}

void shm_receive_start(struct ofp_endpoint *base, struct ofp_receive *receive)
{
    struct shm_link *link = receive->message.peer ? shm_link_of(receive->message.peer) : NULL;

    (void)base;
    /* Closed here: what the receive wanted went with the link. */
    if (!link) {
        ofp_receive_complete(receive, ECANCELED, 0);
        return;
    }
    switch ((enum shm_way)(receive->message.provider_data[SHM_DATA_WAY] & 0xff)) {
    case SHM_WAY_KEPT:
        receive_kept(receive);
        return;
    case SHM_WAY_BOUNCE:
        receive_bounce(link, receive);
        return;
    case SHM_WAY_FETCH:
        break;
    }
    if (receive->length) {
        pull_start(link, receive);
        return;
    }
    send_done(link, receive, 0);
    ofp_receive_complete(receive, 0, 0);
}

static struct ofp_receive *find_fragmented(struct shm_link *link, uint64_t id)
{
    struct ofp_receive *receive = ofp_receive_find(link->peer, id);

    return receive && receive->provider_data[RECEIVE_WAY] == RECEIVE_FRAGMENTS ? receive : NULL;
}

bool shm_fragment_arrived(struct shm_link *link, const struct shm_content *content)
{
    const struct shm_bounce_fields *fields = &content->bounce;
    struct ofp_receive *receive = find_fragmented(link, fields->receive);

    if (!receive || !shm_bounce_is_valid(link, fields, content->length) || fields->offset > receive->length ||
        content->length > receive->length - fields->offset)
        return false;
    ofp_receive_write(receive, fields->offset, shm_bounce_memory(&link->segment, fields->index), content->length);
    shm_bounce_free(link, fields, true);
    OFP_SHM_STEP(fragment_received);
    receive->provider_data[RECEIVE_ARRIVED] += content->length;
    if (receive->provider_data[RECEIVE_ARRIVED] < receive->length)
        return true;
    send_done(link, receive, 0);
    ofp_receive_complete(receive, 0, 0);
    return true;
}

bool shm_abort_arrived(struct shm_link *link, const struct shm_content *content)
{
    struct ofp_receive *receive = find_fragmented(link, content->control.id);
    int error = content->control.error > 0 ? content->control.error : EIO;

    if (!receive)
        return false;
    send_done(link, receive, error);
    ofp_receive_complete(receive, error, 0);
    return true;
}
