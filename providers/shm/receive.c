/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading the ring. A slot is copied before any of it is looked at: whoever signs it may write it still. Payload alone is
 * read in place, once, since nothing is decided by it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "remote.h"

enum outcome {
    TAKEN,
    STALLED /* the core is full: the slot stays, and is tried again */
};

static inline void fill_message(struct ofp_message *message, const struct shm_link *link,
                                const struct shm_content *content, uint64_t length)
{
    message->peer = link->peer;
    message->source = link->peer->index;
    message->tagged = (content->flags & SHM_TAGGED) != 0;
    message->has_data = (content->flags & SHM_HAS_DATA) != 0;
    message->tag = content->tag;
    message->data = content->data;
    message->length = length;
}

/* ------------------------------------------------------------------------------------------------- small messages */

/* The core has no room for the payload, but may have for an announcement: then the payload stays with us. */
static enum outcome keep_inline(struct shm_link *link, struct ofp_message *message, const struct shm_content *content)
{
    struct shm_kept *kept = malloc(sizeof(*kept));

    if (!kept)
        return STALLED;
    kept->length = content->length;
    memcpy(kept->payload, content->payload, content->length);
    /* Before the announcement: it may be matched, and freed, from within. */
    ofp_list_append(&link->kept, &kept->node);
    message->provider_data[SHM_DATA_WAY] = SHM_WAY_KEPT;
    message->provider_data[SHM_DATA_ID] = (uint64_t)(uintptr_t)kept;
    if (shm_core->message_announced(link->endpoint->base, message) == 0)
        return TAKEN;
    ofp_list_remove(&kept->node);
    free(kept);
    return STALLED;
}

static inline enum outcome take_inline(struct shm_link *link, const struct shm_slot *slot, struct shm_content *content)
{
    struct ofp_message message;

    if (SHM_UNLIKELY(content->length > SHM_INLINE_SIZE)) {
        shm_link_violation(link, "a message that cannot fit its slot");
        return TAKEN;
    }
    if (content->length > SHM_INLINE_FIRST)
        memcpy(content->payload + SHM_INLINE_FIRST, slot->content.payload + SHM_INLINE_FIRST,
               content->length - SHM_INLINE_FIRST);
    fill_message(&message, link, content, content->length);
    if (SHM_LIKELY(shm_core->message_arrived(link->endpoint->base, &message, content->payload) == 0))
        return TAKEN;
    return keep_inline(link, &message, content);
}

void shm_kept_drop(struct shm_link *link)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&link->kept)))
        free(OFP_CONTAINER_OF(node, struct shm_kept, node));
}

/* -------------------------------------------------------------------------------------------------- longer messages */

static enum outcome take_bounce(struct shm_link *link, const struct shm_content *content)
{
    struct ofp_message message;
    const struct shm_bounce_fields *fields = &content->bounce;

    if (!shm_bounce_is_valid(link, fields, content->length)) {
        shm_link_violation(link, "a bounce buffer that does not exist");
        return TAKEN;
    }
    fill_message(&message, link, content, content->length);
    if (shm_core->message_arrived(link->endpoint->base, &message, shm_bounce_memory(&link->segment, fields->index)) ==
        0) {
        shm_bounce_free(link, fields, false);
        return TAKEN;
    }
    /* It waits where it is. */
    message.provider_data[SHM_DATA_WAY] = SHM_WAY_BOUNCE;
    message.provider_data[SHM_DATA_ID] = (uint64_t)fields->index << 32 | fields->generation;
    return shm_core->message_announced(link->endpoint->base, &message) == 0 ? TAKEN : STALLED;
}

static enum outcome take_announced(struct shm_link *link, const struct shm_slot *slot, struct shm_content *content)
{
    struct ofp_endpoint *endpoint = link->endpoint->base;
    struct ofp_message message;
    struct ofp_receive *receive;
    const struct shm_announced_fields *fields = &content->announced;

    content->announced.arena_offset = slot->content.announced.arena_offset;
    if (fields->iov_count == 0 || fields->iov_count > OFP_SEGMENT_LIMIT || fields->length > INT64_MAX) {
        shm_link_violation(link, "an announcement of impossible size");
        return TAKEN;
    }
    fill_message(&message, link, content, fields->length);
    message.provider_data[SHM_DATA_WAY] =
        SHM_WAY_REMOTE | (uint64_t)fields->iov_count << 8 | (uint64_t)fields->arena << 32;
    message.provider_data[SHM_DATA_ID] = fields->id;
    message.provider_data[SHM_DATA_ADDRESS] = fields->address;
    message.provider_data[SHM_DATA_ARENA_OFFSET] = fields->arena_offset;
    /* The sender waits until it is here. Beyond the core's bound that is when a receive has matched it. */
    if (content->flags & SHM_FETCH && shm_core->message_begin(endpoint, &message, false, &receive) == 0) {
        shm_receive_start(endpoint, receive);
        return TAKEN;
    }
    return shm_core->message_announced(endpoint, &message) == 0 ? TAKEN : STALLED;
}

/* ----------------------------------------------------------------------------------------------------------- slots */

static void take_unknown(struct shm_link *link, unsigned kind)
{
    struct shm_endpoint *endpoint = link->endpoint;

    if (!endpoint->complained_kind)
        shm_core->log(OFP_LOG_ERROR, SHM_NAME, "endpoint %u: a slot of unknown kind %u arrived", endpoint->base->id,
                      kind);
    endpoint->complained_kind = true;
    shm_link_violation(link, "a slot of unknown kind");
}

/* The rare kinds. The link may be gone afterwards. */
static enum outcome take_other(struct shm_link *link, const struct shm_slot *slot, struct shm_content *content)
{
    bool valid = true;

    switch (content->kind) {
    case SHM_BOUNCE:
        return take_bounce(link, content);
    case SHM_ANNOUNCED:
        return take_announced(link, slot, content);
    case SHM_DONE:
        valid = shm_done_arrived(link, content);
        break;
    case SHM_CLEAR:
        valid = shm_clear_arrived(link, content);
        break;
    case SHM_FRAGMENT:
        valid = shm_fragment_arrived(link, content);
        break;
    case SHM_ABORT:
        valid = shm_abort_arrived(link, content);
        break;
    case SHM_GOODBYE:
        shm_link_goodbye(link, content->flags & SHM_ENDED);
        break;
    case SHM_REMOTE:
        valid = shm_request_arrived(link, content);
        break;
    case SHM_ANSWER:
        valid = shm_answer_arrived(link, content);
        break;
    case SHM_NOTICE:
        content->control = slot->content.control;
        valid = shm_notice_arrived(link, content);
        break;
    case SHM_NOTHING:
        break;
    default:
        take_unknown(link, content->kind);
    }
    if (!valid)
        shm_link_violation(link, "an answer to nothing");
    return TAKEN;
}

/* Slots of a link that is not up: it comes up by them, or only its farewell counts. */
static bool link_listens(struct shm_endpoint *endpoint, struct shm_link *link, const struct shm_content *content)
{
    /* Closed before our meeting was over, which then fails by itself. */
    if (link && link->state == SHM_LINK_ASKING && content->kind == SHM_GOODBYE)
        return false;
    if (!link || link->state == SHM_LINK_ASKING) {
        if (!endpoint->complained_owner)
            shm_core->log(OFP_LOG_WARNING, SHM_NAME, "endpoint %u: a slot of nobody known arrived and is dropped",
                          endpoint->base->id);
        endpoint->complained_owner = true;
        endpoint->protocol_errors++;
        return false;
    }
    if (link->state == SHM_LINK_ANSWERED)
        shm_link_up(link);
    if (link->peer)
        return true;
    if (content->kind == SHM_GOODBYE)
        shm_link_goodbye(link, content->flags & SHM_ENDED);
    return false;
}

static inline enum outcome take(struct shm_endpoint *endpoint, const struct shm_slot *slot, uint64_t state)
{
    struct shm_link *link = shm_link_find(endpoint, shm_state_owner(state));
    struct shm_content content;

    /* The first line; the second is copied where the kind has one. */
    memcpy(&content, &slot->content, SHM_CACHE_LINE - sizeof(slot->state));
    if (SHM_UNLIKELY(!link || link->state != SHM_LINK_UP) && !link_listens(endpoint, link, &content))
        return TAKEN;
    if (SHM_LIKELY(content.kind == SHM_INLINE))
        return take_inline(link, slot, &content);
    return take_other(link, slot, &content);
}

/* ------------------------------------------------------------------------------------------------------- progress */

/* Tell senders whether unexpected payload is above its bound. */
static void update_announce_only(struct shm_endpoint *endpoint)
{
    bool full = shm_core->announce_only(endpoint->base);

    if (full == ((endpoint->work & SHM_WORK_ANNOUNCE) != 0))
        return;
    if (full) {
        endpoint->work |= SHM_WORK_ANNOUNCE;
        ofp_set_bits(&endpoint->ring.header->status, SHM_ANNOUNCE);
    } else {
        endpoint->work &= ~(uint32_t)SHM_WORK_ANNOUNCE;
        ofp_clear_bits(&endpoint->ring.header->status, SHM_ANNOUNCE);
    }
}

static int work(struct shm_endpoint *endpoint)
{
    int events = 0;

    if (endpoint->work & SHM_WORK_LINKS)
        events += shm_links_work(endpoint);
    if (endpoint->work & SHM_WORK_PULLS)
        events += shm_pulls_work(endpoint);
    if (endpoint->work & SHM_WORK_PUSHES)
        events += shm_pushes_work(endpoint);
    if (endpoint->work & SHM_WORK_REACHING)
        events += shm_reaching_work(endpoint);
    if (endpoint->work & SHM_WORK_ANNOUNCE)
        update_announce_only(endpoint);
    return events;
}

/*
 * Waking a sender costs us a system call and an interrupt to its core, and awake it competes for the memory that we copy from. As
 * long as it has more for us to fetch it misses nothing by sleeping on, up to a bound.
 */
static void wake_soon(struct shm_endpoint *endpoint)
{
    uint64_t state = shm_ring_peek(&endpoint->ring, endpoint->head);

    endpoint->moved_since += endpoint->moved;
    if (endpoint->moved >= SHM_PIECE && endpoint->moved_since < SHM_WAKE_BYTES &&
        shm_ring_is_ready(&endpoint->ring, endpoint->head, state))
        shm_core->flush_later(endpoint->base);
    else
        shm_wake_sleepers(endpoint);
}

int shm_progress(struct ofp_endpoint *base)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(base);
    int events = 0;

    endpoint->in_progress = true;
    endpoint->moved = 0;
    for (; events < SHM_DRAIN && endpoint->moved < SHM_PIECE; events++) {
        uint64_t state = shm_ring_peek(&endpoint->ring, endpoint->head);

        if (!shm_ring_is_ready(&endpoint->ring, endpoint->head, state))
            break;
        endpoint->stalled = take(endpoint, shm_ring_slot(&endpoint->ring, endpoint->head), state) == STALLED;
        if (SHM_UNLIKELY(endpoint->stalled))
            break;
        shm_ring_free(&endpoint->ring, endpoint->head++);
    }
    if (SHM_LIKELY(events))
        update_announce_only(endpoint);
    else if (SHM_UNLIKELY(++endpoint->empty_polls % SHM_MEND_POLLS == 0))
        shm_ring_mend(endpoint);
    if (SHM_UNLIKELY(endpoint->work))
        events += work(endpoint);
    endpoint->in_progress = false;
    if (SHM_UNLIKELY(!ofp_list_empty(&endpoint->to_wake)))
        wake_soon(endpoint);
    return events;
}
