/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender's side of announced messages: their end (DONE), and the pipeline through bounce buffers (CLEAR, then
 * fragments) for receivers that choose it.
 */
#include "message/push.h"

#include <errno.h>
#include <stdlib.h>

#include "base/pending.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/publish.h"
#include "ofipy/iov.h"

/*
 * The payload of one message that leaves in fragments. Owned by link->pushes. Invariant: offset <= length; the link is
 * in endpoint->pushing exactly while it has pushes.
 */
struct shm_push {
    struct ofp_list node; /* in link->pushes, in the order of the receiver's requests */
    struct shm_link *link;
    struct ofp_pending *pending;
    uint64_t receive; /* the receiver's id of the transfer */
    uint64_t offset, length;
};

static struct shm_push *push_of_pending(const struct ofp_pending *pending)
{
    return (struct shm_push *)(uintptr_t)pending->provider_data[SHM_PENDING_PUSH];
}

static void end_push(struct shm_push *push)
{
    struct shm_link *link = push->link;

    OFP_CHECK(push_of_pending(push->pending) == push && push->offset <= push->length);
    push->pending->provider_data[SHM_PENDING_PUSH] = 0;
    ofp_list_remove(&push->node);
    free(push);
    if (ofp_list_empty(&link->pushes))
        ofp_list_remove(&link->pushing);
}

bool shm_done_arrived(struct shm_link *link, const struct shm_content *content)
{
    struct ofp_pending *pending = ofp_pending_find(link->peer, content->control.id);
    int32_t error = content->control.error;

    if (!pending || (pending->provider_data[SHM_PENDING_STATE] != SHM_PENDING_ANNOUNCED &&
                     pending->provider_data[SHM_PENDING_STATE] != SHM_PENDING_PUSHED))
        return false;
    if (push_of_pending(pending))
        end_push(push_of_pending(pending));
    ofp_transfer_complete(pending, error < 0 ? EIO : error, 0);
    return true;
}

static void send_abort(struct shm_link *link, uint64_t receive, int error)
{
    shm_control_send(link, SHM_ABORT, 0, &(struct shm_control_fields){.id = receive, .error = error});
}

bool shm_clear_arrived(struct shm_link *link, const struct shm_content *content)
{
    const struct shm_control_fields *fields = &content->control;
    struct ofp_pending *pending = ofp_pending_find(link->peer, fields->id);
    struct shm_push *push;

    if (!pending || pending->provider_data[SHM_PENDING_STATE] != SHM_PENDING_ANNOUNCED ||
        fields->length > pending->transfer.length)
        return false;
    push = malloc(sizeof(*push));
    if (!push) {
        send_abort(link, fields->receive, ENOMEM);
        return true;
    }
    *push = (struct shm_push){.link = link, .pending = pending, .receive = fields->receive, .length = fields->length};
    pending->provider_data[SHM_PENDING_STATE] = SHM_PENDING_PUSHED;
    pending->provider_data[SHM_PENDING_PUSH] = (uint64_t)(uintptr_t)push;
    if (ofp_list_empty(&link->pushes))
        ofp_list_append(&link->endpoint->pushing, &link->pushing);
    ofp_list_append(&link->pushes, &push->node);
    link->endpoint->work |= SHM_WORK_PUSHES;
    OFP_SHM_STEP(push_started);
    return true;
}

/* 0, -EAGAIN, or an error that ends the push. */
static int push_fragment(struct shm_push *push)
{
    struct shm_link *link = push->link;
    struct shm_endpoint *endpoint = link->endpoint;
    const struct ofp_transfer *transfer = &push->pending->transfer;
    uint64_t part = push->length - push->offset, state;
    struct shm_slot *slot;
    int index;

    if (!shm_ring_has_space(&link->ring))
        return -EAGAIN;
    index = shm_bounce_allocate(link, true);
    if (index < 0)
        return index;
    if (part > endpoint->segment.bounce_size)
        part = endpoint->segment.bounce_size;
    ofp_iov_gather(shm_bounce_resolve(&endpoint->segment, (uint32_t)index), transfer->iov, transfer->iov_count,
                   push->offset, part);
    slot = shm_ring_claim(&link->ring, link->number_there, &state);
    if (!slot) {
        shm_bounce_free(endpoint, (uint32_t)index);
        return -EAGAIN;
    }
    slot->content.kind = SHM_FRAGMENT;
    slot->content.flags = 0;
    slot->content.length = (uint32_t)part;
    slot->content.bounce = (struct shm_bounce_fields){.index = (uint32_t)index,
                                                      .generation = endpoint->bounce.buffers[index].generation,
                                                      .receive = push->receive,
                                                      .offset = push->offset};
    push->offset += part;
    endpoint->bounce.buffers[index].slot = slot;
    endpoint->bounce.buffers[index].slot_state = state;
    shm_slot_publish(link, slot, state);
    OFP_SHM_STEP(push_fragment);
    return 0;
}

/* Send fragments of a message. 0: this call may send more messages of the link. The push may be freed afterwards. */
static int push_message(struct shm_push *push, uint64_t *room, int *sent)
{
    int result = 0;

    while (push->link->up && push->offset < push->length && *room) {
        uint64_t start = push->offset;

        result = push_fragment(push);
        if (result)
            break;
        *room -= push->offset - start < *room ? push->offset - start : *room;
        ++*sent;
    }
    if (result && result != -EAGAIN)
        send_abort(push->link, push->receive, -result);
    if (push->offset < push->length && (!result || result == -EAGAIN))
        return -EAGAIN;
    end_push(push);
    return 0;
}

/*
 * The messages of one link leave one after the other: each is complete at its receiver as early as possible, and takes
 * the time of its own bytes there, which the receiver measures (cost.c).
 */
static int push_link(struct shm_link *link)
{
    struct ofp_list *node, *following;
    uint64_t room = SHM_PIECE;
    int sent = 0;

    OFP_CHECK(ofp_list_linked(&link->pushing) && !ofp_list_empty(&link->pushes));
    OFP_LIST_EACH(node, following, &link->pushes)
        if (push_message(OFP_CONTAINER_OF(node, struct shm_push, node), &room, &sent))
            break;
    return sent;
}

int shm_pushes_progress(struct shm_endpoint *endpoint)
{
    struct ofp_list *node, *following;
    int events = 0;

    OFP_LIST_EACH(node, following, &endpoint->pushing)
        events += push_link(OFP_CONTAINER_OF(node, struct shm_link, pushing));
    if (ofp_list_empty(&endpoint->pushing))
        endpoint->work &= ~(uint32_t)SHM_WORK_PUSHES;
    else
        /* The link that was served first is served last next time. */
        ofp_list_append(&endpoint->pushing, ofp_list_pop(&endpoint->pushing));
    return events;
}

bool shm_pushes_can_move(struct shm_endpoint *endpoint)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &endpoint->pushing) {
        struct shm_link *link = OFP_CONTAINER_OF(node, struct shm_link, pushing);

        if (link->up && shm_ring_has_space(&link->ring) && shm_bounce_collect(link))
            return true;
    }
    return false;
}

void shm_pushes_free(struct shm_link *link)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &link->pushes)
        end_push(OFP_CONTAINER_OF(node, struct shm_push, node));
}
