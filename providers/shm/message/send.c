/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Post a send: in the slot, in a bounce buffer, or announced. The small tagged send is the fastest path: one compare-
 * and-swap, two cache lines of the peer (tail hint and slot), one exchange; no call out of this file, no allocation, no
 * system call.
 */
#include "message/send.h"

#include <errno.h>

#include "base/pending.h"
#include "link/bounce.h"
#include "link/publish.h"
#include "memory/arena.h"
#include "ofipy/iov.h"
#include "rma/direct.h"

/* Copy at most SHM_INLINE_SIZE bytes; the branches beat a call of memcpy for the shortest ones. */
static inline void copy_inline(uint8_t *target, const uint8_t *source, uint64_t length)
{
    if (length == 8) {
        ofp_memory_copy(target, source, 8);
    } else if (length >= 16 && length <= 32) {
        ofp_memory_copy(target, source, 16);
        ofp_memory_copy(target + length - 16, source + length - 16, 16);
    } else {
        ofp_memory_copy(target, source, length);
    }
}

static inline void fill_envelope(struct shm_content *content, enum shm_kind kind, const struct ofp_operation *op,
                                 uint64_t length)
{
    static const uint8_t channels[] = {
        [OFP_CHANNEL_MESSAGE] = 0, [OFP_CHANNEL_TAGGED] = SHM_TAGGED, [OFP_CHANNEL_INTERNAL] = SHM_INTERNAL};

    content->kind = (uint8_t)kind;
    content->flags =
        (uint8_t)(channels[ofp_operation_rows[op->op].channel] | (op->flags & OFP_REMOTE_CQ_DATA ? SHM_HAS_DATA : 0));
    content->length = (uint32_t)length;
    content->tag = op->tag;
    content->data = op->data;
}

static inline int post_inline(struct shm_link *link, const struct ofp_transfer *transfer)
{
    uint64_t state;
    struct shm_slot *slot = shm_ring_claim(&link->ring, link->number_there, &state);

    if (SHM_UNLIKELY(!slot))
        return -EAGAIN;
    fill_envelope(&slot->content, SHM_INLINE, transfer->op, transfer->length);
    if (SHM_LIKELY(transfer->iov_count == 1))
        copy_inline(slot->content.payload, transfer->iov[0].iov_base, transfer->length);
    else
        ofp_iov_gather(slot->content.payload, transfer->iov, transfer->iov_count, 0, transfer->length);
    shm_slot_publish(link, slot, state);
    return OFP_POST_DONE;
}

static int post_bounce(struct shm_link *link, const struct ofp_transfer *transfer)
{
    struct shm_endpoint *endpoint = link->endpoint;
    struct shm_slot *slot;
    uint64_t state;
    int index;

    if (!shm_ring_has_space(&link->ring))
        return -EAGAIN;
    index = shm_bounce_allocate(link, false);
    if (index < 0)
        return index;
    OFP_SHM_STEP(bounce_taken);
    ofp_iov_gather(shm_bounce_resolve(&endpoint->segment, (uint32_t)index), transfer->iov, transfer->iov_count, 0,
                   transfer->length);
    OFP_SHM_STEP(bounce_filled);
    slot = shm_ring_claim(&link->ring, link->number_there, &state);
    if (!slot) {
        shm_bounce_free(endpoint, (uint32_t)index);
        return -EAGAIN;
    }
    fill_envelope(&slot->content, SHM_BOUNCE, transfer->op, transfer->length);
    slot->content.bounce.index = (uint32_t)index;
    slot->content.bounce.generation = endpoint->bounce.buffers[index].generation;
    shm_slot_publish(link, slot, state);
    OFP_SHM_STEP(bounce_sent);
    return OFP_POST_BOUNCED;
}

/* Describe the sender's memory for the receiver. */
static void fill_announcement(struct shm_content *content, struct shm_link *link, struct ofp_pending *pending)
{
    const struct ofp_transfer *transfer = &pending->transfer;
    struct shm_announced_fields *fields = &content->announced;
    uint64_t offset = 0;

    fill_envelope(content, SHM_ANNOUNCED, transfer->op, 0);
    if ((transfer->op->flags & (OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE)) == OFP_DELIVERY_COMPLETE)
        content->flags |= SHM_FETCH;
    fields->length = transfer->length;
    fields->id = pending->id;
    fields->iov_count = transfer->iov_count;
    fields->arena = 0;
    if (SHM_UNLIKELY(transfer->iov_count == OFP_LAYOUT)) {
        fields->iov_count = SHM_SENDER_MOVES;
        fields->address = 0;
    } else if (transfer->iov_count == 1) {
        fields->address = (uint64_t)(uintptr_t)transfer->iov[0].iov_base;
        fields->arena =
            shm_arena_find_memory(link->endpoint->domain, transfer->iov[0].iov_base, transfer->length, &offset);
    } else {
        /* The retained copy of the list keeps its address while the operation is pending. */
        fields->address = (uint64_t)(uintptr_t)transfer->iov;
    }
    fields->arena_offset = offset;
}

static int post_announced(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer)
{
    struct ofp_pending *pending;
    struct shm_slot *slot;
    uint64_t state;

    if (SHM_UNLIKELY(transfer->iov_count == OFP_LAYOUT) && !(link->segment.knows & SHM_KNOWS_PUSHES))
        return -E2BIG;
    slot = shm_ring_claim(&link->ring, link->number_there, &state);
    if (!slot)
        return -EAGAIN;
    /* Retain only now: a retained operation cannot be returned to the caller. */
    pending = ofp_transfer_retain(base, link->peer, transfer);
    OFP_SHM_STEP(announce_retained);
    if (!pending) {
        slot->content.kind = SHM_NOTHING;
        shm_slot_publish(link, slot, state);
        return -EAGAIN;
    }
    pending->provider_data[SHM_PENDING_STATE] = SHM_PENDING_ANNOUNCED;
    pending->protocol = OFP_PROTOCOL_ANNOUNCED;
    fill_announcement(&slot->content, link, pending);
    shm_slot_publish(link, slot, state);
    OFP_SHM_STEP(announce_sent);
    return OFP_POST_PENDING;
}

/*
 * For the completion levels of an announced message the receiver has to answer, so the message is announced: the
 * receiver answers with DONE.
 */
static inline bool can_use_slot(uint64_t length, uint64_t op_flags)
{
    return length <= SHM_INLINE_SIZE && !(op_flags & (OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE));
}

static inline struct ofp_protocol_choice choose_long_protocol(const struct shm_link *link, uint64_t length,
                                                              uint64_t op_flags)
{
    if (op_flags & (OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE))
        return (struct ofp_protocol_choice){OFP_PROTOCOL_ANNOUNCED, OFP_PROTOCOL_FORCED, 0};
    if (length > link->endpoint->segment.bounce_size)
        return (struct ofp_protocol_choice){OFP_PROTOCOL_ANNOUNCED, OFP_PROTOCOL_BY_THRESHOLD, 0};
    /* The status is a hint, and a stale value does no harm: relaxed. */
    if (ofp_load_relaxed(&link->ring.header->status) & SHM_ANNOUNCE)
        return (struct ofp_protocol_choice){OFP_PROTOCOL_ANNOUNCED, OFP_PROTOCOL_BY_MEMORY, 0};
    return (struct ofp_protocol_choice){OFP_PROTOCOL_BOUNCE, OFP_PROTOCOL_BY_THRESHOLD, 0};
}

struct ofp_protocol_choice shm_send_choose_protocol(struct shm_link *link, uint64_t length)
{
    struct ofp_protocol_choice choice = choose_long_protocol(link, length, 0);

    if (can_use_slot(length, 0))
        return (struct ofp_protocol_choice){OFP_PROTOCOL_EAGER, OFP_PROTOCOL_BY_THRESHOLD, 0};
    /* As post_long does when no buffer is free. */
    if (choice.protocol == OFP_PROTOCOL_BOUNCE && shm_bounce_check(link, false) != 0)
        return (struct ofp_protocol_choice){OFP_PROTOCOL_ANNOUNCED, OFP_PROTOCOL_BY_MEMORY, 0};
    return choice;
}

static int post_long(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer)
{
    int result;

    if (choose_long_protocol(link, transfer->length, transfer->op->flags).protocol == OFP_PROTOCOL_ANNOUNCED)
        return post_announced(base, link, transfer);
    result = post_bounce(link, transfer);
    /*
     * No buffer is free for this peer: the message is announced and its payload stays here. Waiting for a buffer could
     * take forever, since later messages may be the ones for which the peer waits.
     */
    return result == -ENOMEM || result == -EAGAIN ? post_announced(base, link, transfer) : result;
}

int shm_operation_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct shm_link *link = shm_link_of(peer);

    /*
     * The link ends, and the core defers the operation until the peer is lost; or an earlier operation has not left
     * yet.
     */
    if (SHM_UNLIKELY(!link || !link->ready))
        return -EAGAIN;
    if (SHM_UNLIKELY(transfer->remote_count))
        return shm_remote_post(base, link, transfer);
    if (SHM_UNLIKELY(transfer->op->op == OFP_INTERNAL_SEND && !(link->segment.knows & SHM_KNOWS_INTERNAL)))
        return -EOPNOTSUPP;
    if (SHM_LIKELY(can_use_slot(transfer->length, transfer->op->flags)))
        return post_inline(link, transfer);
    return post_long(base, link, transfer);
}

void shm_endpoint_flush(struct ofp_endpoint *base) { shm_sleepers_wake(shm_endpoint_of(base)); }
