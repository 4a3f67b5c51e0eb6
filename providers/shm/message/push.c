/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender's side of what was announced: its end (DONE), and the way through bounce buffers (CLEAR, then fragments) for
 * receivers that can reach our memory by no better one.
 */
#include "message/push.h"

#include <errno.h>
#include <stdlib.h>

#include "base/pending.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/publish.h"
#include "ofipy/iov.h"

struct shm_push {
    struct ofp_list node; /* in endpoint->pushes; each in its turn */
    struct shm_link *link;
    struct ofp_pending *pending;
    uint64_t receive; /* the receiver's id of the transfer */
    uint64_t offset, length;
};

static void push_end(struct shm_push *push)
{
    push->pending->provider_data[SHM_PENDING_PUSH] = 0;
    ofp_list_remove(&push->node);
    free(push);
}

static struct shm_push *push_of(const struct ofp_pending *pending)
{
    return (struct shm_push *)(uintptr_t)pending->provider_data[SHM_PENDING_PUSH];
}

bool shm_done_arrived(struct shm_link *link, const struct shm_content *content)
{
    struct ofp_pending *pending = ofp_pending_find(link->peer, content->control.id);
    int32_t error = content->control.error;

    if (!pending || (pending->provider_data[SHM_PENDING_STATE] != SHM_PENDING_ANNOUNCED &&
                     pending->provider_data[SHM_PENDING_STATE] != SHM_PENDING_PUSHED))
        return false;
    if (push_of(pending))
        push_end(push_of(pending));
    ofp_transfer_complete(pending, error < 0 ? EIO : error, 0);
    return true;
}

static void abort_push(struct shm_link *link, uint64_t receive, int error)
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
        abort_push(link, fields->receive, ENOMEM);
        return true;
    }
    *push = (struct shm_push){.link = link, .pending = pending, .receive = fields->receive, .length = fields->length};
    pending->provider_data[SHM_PENDING_STATE] = SHM_PENDING_PUSHED;
    pending->provider_data[SHM_PENDING_PUSH] = (uint64_t)(uintptr_t)push;
    ofp_list_append(&link->endpoint->pushes, &push->node);
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

    if (!shm_ring_has_room(&link->ring))
        return -EAGAIN;
    index = shm_bounce_take(link, true);
    if (index < 0)
        return index;
    if (part > endpoint->segment.bounce_size)
        part = endpoint->segment.bounce_size;
    ofp_iov_gather(shm_bounce_memory(&endpoint->segment, (uint32_t)index), transfer->iov, transfer->iov_count,
                   push->offset, part);
    slot = shm_ring_claim(&link->ring, link->number_there, &state);
    if (!slot) {
        shm_bounce_give(endpoint, (uint32_t)index);
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
    shm_publish(link, slot, state);
    OFP_SHM_STEP(push_fragment);
    return 0;
}

/* Returns fragments sent; the push may be gone afterwards. */
static int push_piece(struct shm_push *push)
{
    uint64_t start = push->offset;
    int sent = 0, result = 0;

    while (push->link->up && push->offset < push->length && push->offset - start < SHM_PIECE) {
        result = push_fragment(push);
        if (result)
            break;
        sent++;
    }
    if (result && result != -EAGAIN)
        abort_push(push->link, push->receive, -result);
    if (push->offset >= push->length || (result && result != -EAGAIN))
        push_end(push);
    return sent;
}

int shm_pushes_work(struct shm_endpoint *endpoint)
{
    struct ofp_list *node, *following;
    int events = 0;

    OFP_LIST_EACH(node, following, &endpoint->pushes)
        events += push_piece(OFP_CONTAINER_OF(node, struct shm_push, node));
    if (ofp_list_empty(&endpoint->pushes))
        endpoint->work &= ~(uint32_t)SHM_WORK_PUSHES;
    else
        /* Who was served first is served last the next time. */
        ofp_list_append(&endpoint->pushes, ofp_list_pop(&endpoint->pushes));
    return events;
}

bool shm_pushes_can_move(struct shm_endpoint *endpoint)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &endpoint->pushes) {
        struct shm_link *link = OFP_CONTAINER_OF(node, struct shm_push, node)->link;

        if (link->up && shm_ring_has_room(&link->ring) && shm_bounce_would_have(link))
            return true;
    }
    return false;
}

void shm_pushes_drop(struct shm_link *link)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &link->endpoint->pushes) {
        struct shm_push *push = OFP_CONTAINER_OF(node, struct shm_push, node);

        if (push->link == link)
            push_end(push);
    }
}
