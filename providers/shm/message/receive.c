/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read the ring. A slot is copied before any of it is checked: its sender may still write it. Only payload is read in
 * place, once, since no decision depends on it.
 */
#include "message/receive.h"

#include <errno.h>
#include <string.h>

#include "connection/lifecycle.h"
#include "connection/repair.h"
#include "link/bounce.h"
#include "link/control.h"
#include "link/link.h"
#include "link/publish.h"
#include "message/pull.h"
#include "message/push.h"
#include "rma/direct.h"
#include "rma/request.h"
#include "rma/serve.h"

enum outcome {
    TAKEN,
    STALLED /* the core has no space: the slot stays, and is handled again later */
};

_Static_assert(SHM_TAGGED == OFP_CHANNEL_TAGGED, "the bit is the channel");
_Static_assert(SHM_INLINE_SIZE <= OFP_SHORT_MESSAGE, "what a slot holds may count as announced");

static inline void fill_message(struct ofp_message *message, const struct shm_link *link,
                                const struct shm_content *content, uint64_t length)
{
    message->peer = link->peer;
    message->source = link->peer->index;
    message->channel = content->flags & SHM_TAGGED;
    if (SHM_UNLIKELY(content->flags & SHM_INTERNAL))
        message->channel = OFP_CHANNEL_INTERNAL;
    message->extras = 0;
    message->has_data = (content->flags & SHM_HAS_DATA) != 0;
    message->tag = content->tag;
    message->data = content->data;
    message->length = length;
}

/* ------------------------------------------------------------------------------------------------- small messages */

/*
 * The message is beyond the bound on unexpected payload. It cannot stay announced, since the sender's operation has
 * ended: it counts as if it were announced.
 */
static enum outcome deliver_inline_as_announced(struct shm_link *link, const struct ofp_message *message,
                                                const struct shm_content *content)
{
    struct ofp_receive *receive;

    if (ofp_message_begin(link->endpoint->base, message, OFP_ROOM_ANNOUNCED, &receive) != 0)
        return STALLED;
    ofp_receive_write(receive, 0, content->payload, content->length);
    ofp_receive_complete(receive, 0, 0);
    return TAKEN;
}

static inline enum outcome deliver_inline(struct shm_link *link, const struct shm_slot *slot,
                                          struct shm_content *content)
{
    struct ofp_message message;

    if (SHM_UNLIKELY(content->length > SHM_INLINE_SIZE)) {
        shm_link_fail_protocol(link, "a message that cannot fit its slot");
        return TAKEN;
    }
    if (content->length > SHM_INLINE_FIRST)
        memcpy(content->payload + SHM_INLINE_FIRST, slot->content.payload + SHM_INLINE_FIRST,
               content->length - SHM_INLINE_FIRST);
    fill_message(&message, link, content, content->length);
    if (SHM_LIKELY(ofp_message_arrived(link->endpoint->base, &message, content->payload) == 0))
        return TAKEN;
    return deliver_inline_as_announced(link, &message, content);
}

/* -------------------------------------------------------------------------------------------------- longer messages */

static enum outcome deliver_bounce(struct shm_link *link, const struct shm_content *content)
{
    struct ofp_message message;
    const struct shm_bounce_fields *fields = &content->bounce;

    if (!shm_bounce_is_valid(link, fields, content->length)) {
        shm_link_fail_protocol(link, "a bounce buffer that does not exist");
        return TAKEN;
    }
    fill_message(&message, link, content, content->length);
    ofp_message_set_protocol(&message, OFP_PROTOCOL_BOUNCE);
    if (ofp_message_arrived(link->endpoint->base, &message, shm_bounce_resolve(&link->segment, fields->index)) == 0) {
        shm_bounce_return(link, fields, false);
        return TAKEN;
    }
    /* The message stays in the sender's bounce buffer until a receive matches. */
    message.provider_data[SHM_DATA_PLACE] = SHM_PLACE_BOUNCE;
    message.provider_data[SHM_DATA_ID] = (uint64_t)fields->index << 32 | fields->generation;
    return ofp_message_announced(link->endpoint->base, &message) == 0 ? TAKEN : STALLED;
}

static enum outcome deliver_announced(struct shm_link *link, const struct shm_slot *slot, struct shm_content *content)
{
    struct ofp_endpoint *endpoint = link->endpoint->base;
    struct ofp_message message;
    struct ofp_receive *receive;
    const struct shm_announced_fields *fields = &content->announced;

    content->announced.arena_offset = slot->content.announced.arena_offset;
    if (fields->iov_count == 0 || (fields->iov_count > OFP_SEGMENT_LIMIT && fields->iov_count != SHM_SENDER_MOVES) ||
        fields->length > INT64_MAX) {
        shm_link_fail_protocol(link, "an announcement of impossible size");
        return TAKEN;
    }
    fill_message(&message, link, content, fields->length);
    ofp_message_set_protocol(&message, OFP_PROTOCOL_ANNOUNCED);
    message.provider_data[SHM_DATA_PLACE] =
        SHM_PLACE_SENDER | (uint64_t)fields->iov_count << 8 | (uint64_t)fields->arena << 32;
    message.provider_data[SHM_DATA_ID] = fields->id;
    message.provider_data[SHM_DATA_ADDRESS] = fields->address;
    message.provider_data[SHM_DATA_ARENA_OFFSET] = fields->arena_offset;
    /* The sender waits for delivery. Beyond the core's bound the payload is moved only when a receive has matched. */
    if (content->flags & SHM_FETCH && ofp_message_begin(endpoint, &message, OFP_ROOM_UNEXPECTED, &receive) == 0) {
        shm_receive_start(endpoint, receive);
        return TAKEN;
    }
    return ofp_message_announced(endpoint, &message) == 0 ? TAKEN : STALLED;
}

/* ----------------------------------------------------------------------------------------------------------- slots */

static void reject_unknown_kind(struct shm_link *link, unsigned kind)
{
    struct shm_endpoint *endpoint = link->endpoint;

    if (!endpoint->complained_kind)
        shm_core->log(OFP_LOG_WARNING, SHM_NAME, "endpoint %u: a slot of unknown kind %u arrived", endpoint->base->id,
                      kind);
    endpoint->complained_kind = true;
    shm_link_fail_protocol(link, "a slot of unknown kind");
}

/* Handle the rare kinds. The link may be freed afterwards. */
static enum outcome handle_rare_slot(struct shm_link *link, const struct shm_slot *slot, struct shm_content *content)
{
    bool valid = true;

    switch (content->kind) {
    case SHM_BOUNCE:
        return deliver_bounce(link, content);
    case SHM_ANNOUNCED:
        return deliver_announced(link, slot, content);
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
        shm_goodbye_arrived(link, content->flags & SHM_ENDED);
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
    case SHM_PROBE:
        shm_control_send(link, SHM_ECHO, 0, &(struct shm_control_fields){.id = content->control.id});
        break;
    case SHM_ECHO:
        /* The ECHO came in order, so no earlier slot is missing. */
        link->probe = 0;
        break;
    case SHM_NOTHING:
        break;
    default:
        reject_unknown_kind(link, content->kind);
    }
    if (!valid)
        shm_link_fail_protocol(link, "an answer to nothing");
    return TAKEN;
}

/*
 * The slot was not written by the sender that it names, so no peer is marked lost for it. It may have overwritten a
 * message of another peer, so all peers are probed.
 */
static void reject_foreign_slot(struct shm_endpoint *endpoint)
{
    if (!endpoint->complained_owner)
        shm_core->log(
            OFP_LOG_WARNING, SHM_NAME,
            "endpoint %u: a slot arrived that none of its peers wrote, and is dropped; a process that has its "
            "memory mapped writes where it should not",
            endpoint->base->id);
    endpoint->complained_owner = true;
    endpoint->protocol_errors++;
    endpoint->work |= SHM_WORK_PROBE;
}

/*
 * Slots of a link that is not UP. The first slot of an accepted link establishes it; of a link without a peer only
 * GOODBYE counts. True: the slot is to be handled.
 */
static bool accept_slot_of_down_link(struct shm_endpoint *endpoint, struct shm_link *link,
                                     const struct shm_content *content)
{
    /* The peer closed before the meeting ended; the meeting then fails by itself. */
    if (!link->process && content->kind == SHM_GOODBYE)
        return false;
    if (!link->process) {
        reject_foreign_slot(endpoint);
        return false;
    }
    if (link->met.state == OFPI_MEET_ACCEPTED)
        ofpi_meeting_confirmed(endpoint->upper->meeting, link->peer);
    /* The peer sent and closed before this side received the answer of the meeting. */
    else if (link->peer && link->peer->state == OFP_PEER_CONNECTING && content->kind != SHM_GOODBYE)
        shm_link_report_up(link);
    if (link->peer)
        return true;
    if (content->kind == SHM_GOODBYE)
        shm_goodbye_arrived(link, content->flags & SHM_ENDED);
    return false;
}

/* A slot whose stamp is not the next one of the link that it names (NULL: no link). */
static void handle_slot_out_of_turn(struct shm_endpoint *endpoint, struct shm_link *link,
                                    const struct shm_content *content)
{
    if (link && link->probe && content->kind == SHM_ECHO && content->control.id == link->probe)
        shm_probe_failed(link);
    else if (!link && content->kind == SHM_GOODBYE)
        /* The GOODBYE of a peer that noticed too late that the link had ended. */
        endpoint->work |= SHM_WORK_PROBE;
    else
        reject_foreign_slot(endpoint);
}

static inline enum outcome handle_slot(struct shm_endpoint *endpoint, const struct shm_slot *slot, uint64_t state)
{
    struct shm_link *link = shm_link_find(endpoint, shm_slot_owner_of(state));
    struct shm_content content;
    enum outcome outcome;
    uint32_t before, stamp;

    /* Copy the first cache line; the second is copied where the kind uses it. */
    memcpy(&content, &slot->content, SHM_CACHE_LINE - sizeof(slot->state));
    before = link ? link->stamp_in : 0;
    stamp = shm_stamp_advance(before);
    if (SHM_UNLIKELY(!link || content.stamp != shm_stamp_of(stamp))) {
        handle_slot_out_of_turn(endpoint, link, &content);
        return TAKEN;
    }
    /* Store the stamp now: handling the slot may free the link. */
    link->stamp_in = stamp;
    if (SHM_UNLIKELY(link->met.state != OFPI_MEET_UP) && !accept_slot_of_down_link(endpoint, link, &content))
        return TAKEN;
    outcome = SHM_LIKELY(content.kind == SHM_INLINE) ? deliver_inline(link, slot, &content)
                                                     : handle_rare_slot(link, slot, &content);
    if (SHM_UNLIKELY(outcome == STALLED))
        link->stamp_in = before;
    return outcome;
}

void shm_ring_drain(struct shm_endpoint *endpoint)
{
    for (uint64_t left = UINT64_C(1) << endpoint->ring.shift; left; left--, endpoint->head++) {
        uint64_t state = shm_ring_peek(&endpoint->ring, endpoint->head);

        if (shm_ring_is_ready(&endpoint->ring, endpoint->head, state) &&
            handle_slot(endpoint, shm_ring_find_slot(&endpoint->ring, endpoint->head), state) == STALLED)
            return;
    }
}

/* ------------------------------------------------------------------------------------------------------- progress */

/* Set in the header whether unexpected payload is above its bound, for senders. */
static void update_announce_only(struct shm_endpoint *endpoint)
{
    bool full = ofp_announce_only(endpoint->base);

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

static int progress_work(struct shm_endpoint *endpoint)
{
    int events = 0;

    if (endpoint->work & SHM_WORK_LINKS)
        events += shm_links_progress(endpoint);
    if (endpoint->work & SHM_WORK_PULLS)
        events += shm_pulls_progress(endpoint);
    if (endpoint->work & SHM_WORK_PUSHES)
        events += shm_pushes_progress(endpoint);
    if (endpoint->work & SHM_WORK_REMOTE)
        events += shm_remotes_progress(endpoint);
    if (endpoint->work & SHM_WORK_ANNOUNCE)
        update_announce_only(endpoint);
    if (endpoint->work & SHM_WORK_PROBE)
        shm_links_probe(endpoint);
    return events;
}

/*
 * Waking a sender costs a system call and an interrupt of its core, and an awake sender competes for the memory from
 * which this side copies. While the sender's ring has more payload to fetch, it loses nothing by sleeping, up to a
 * bound, unless it has to fill fragments.
 */
static void wake_sleepers_if_due(struct shm_endpoint *endpoint)
{
    uint64_t state = shm_ring_peek(&endpoint->ring, endpoint->head);

    endpoint->moved_since += endpoint->moved;
    if (endpoint->moved >= SHM_PIECE && endpoint->moved_since < SHM_WAKE_BYTES && !endpoint->pipelined &&
        shm_ring_is_ready(&endpoint->ring, endpoint->head, state))
        ofp_flush_later(endpoint->base);
    else
        shm_sleepers_wake(endpoint);
}

int shm_endpoint_progress(struct ofp_endpoint *base)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(base);
    int events = 0;

    endpoint->in_progress = true;
    endpoint->moved = 0;
    ofp_store_relaxed(&endpoint->ring.header->looks, ++endpoint->looks);
    for (; events < SHM_DRAIN && endpoint->moved < SHM_PIECE; events++) {
        uint64_t state = shm_ring_peek(&endpoint->ring, endpoint->head);

        if (!shm_ring_is_ready(&endpoint->ring, endpoint->head, state))
            break;
        endpoint->stalled =
            handle_slot(endpoint, shm_ring_find_slot(&endpoint->ring, endpoint->head), state) == STALLED;
        if (SHM_UNLIKELY(endpoint->stalled))
            break;
        shm_ring_free(&endpoint->ring, endpoint->head++);
    }
    if (SHM_LIKELY(events))
        update_announce_only(endpoint);
    else if (SHM_UNLIKELY(++endpoint->empty_polls % SHM_REPAIR_POLLS == 0))
        shm_segment_repair(endpoint);
    if (SHM_UNLIKELY(endpoint->work))
        events += progress_work(endpoint);
    endpoint->in_progress = false;
    if (SHM_UNLIKELY(!ofp_list_empty(&endpoint->to_wake)))
        wake_sleepers_if_due(endpoint);
    return events;
}
