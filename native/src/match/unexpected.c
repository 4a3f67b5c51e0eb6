/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/unexpected.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/slab.h"
#include "match/match_index.h"
#include "object/peer.h"

int ofpi_unexpected_open(struct ofpi_unexpected_messages *unexpected, const uint64_t seed[2], uint64_t memory_limit,
                         uint64_t announcement_limit)
{
    int result;

    *unexpected =
        (struct ofpi_unexpected_messages){.memory_limit = memory_limit, .announcement_limit = announcement_limit};
    ofp_list_init(&unexpected->order);
    ofp_list_init(&unexpected->set_aside);
    ofpi_slab_open(&unexpected->slab, sizeof(struct ofpi_unexpected));
    ofpi_slab_open(&unexpected->extra_slab, sizeof(struct ofpi_extra_node));
    unexpected->classes[0].named = true;
    unexpected->class_count = 1;
    result = ofpi_match_index_open(&unexpected->classes[0].index, seed);
    if (!result)
        result = ofpi_match_index_open(&unexpected->set_aside_index, seed);
    if (result)
        ofpi_unexpected_close(unexpected);
    return result;
}

static void free_payload(struct ofpi_unexpected *message)
{
    if (!message->announced && !message->lent && message->length > OFPI_SHORT_PAYLOAD)
        free(message->payload.memory);
}

static void free_payloads(struct ofp_list *list)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, list)
        free_payload(OFP_CONTAINER_OF(node, struct ofpi_unexpected, order));
}

void ofpi_unexpected_close(struct ofpi_unexpected_messages *unexpected)
{
    free_payloads(&unexpected->order);
    free_payloads(&unexpected->set_aside);
    for (uint32_t i = 0; i < unexpected->class_count; i++)
        ofpi_match_index_close(&unexpected->classes[i].index);
    ofpi_match_index_close(&unexpected->set_aside_index);
    ofpi_slab_close(&unexpected->slab);
    ofpi_slab_close(&unexpected->extra_slab);
}

/* ---------------------------------------------------------------------------------------------- keeping and bounds */

/*
 * Of a message that is here; lent memory is the program's. What masks cost beyond the inline nodes is not counted: it is the
 * receiver's own choice, and bounded by OFPI_UNEXPECTED_CLASSES.
 */
static uint64_t memory_of(const struct ofpi_unexpected *message)
{
    return sizeof(*message) + (message->length > OFPI_SHORT_PAYLOAD && !message->lent ? message->length : 0);
}

static bool has_room(struct ofpi_unexpected_messages *unexpected, const struct ofpi_unexpected *message, bool wanted)
{
    /* Messages that were promised room, or that a receive wants, may have gone beyond the limit. */
    uint64_t used = unexpected->memory < unexpected->memory_limit ? unexpected->memory : unexpected->memory_limit;
    uint64_t room = unexpected->memory_limit - used;
    bool is_short = message->length <= OFPI_SHORT_PAYLOAD;

    if (message->announced || message->counted)
        return wanted || unexpected->announced < unexpected->announcement_limit;
    if (wanted && is_short)
        return true;
    /* Not by memory_of: the length is somebody else's, and the sum might be small again. */
    if (room >= sizeof(*message) && (is_short || message->length <= room - sizeof(*message)))
        return true;
    /* One message that is too long for the bound by itself is no reason to throttle the others. */
    if (used >= unexpected->memory_limit / 2)
        unexpected->announce_only = true;
    return false;
}

static bool copy_payload(struct ofpi_unexpected *message, const void *payload)
{
    void *memory = message->length > OFPI_SHORT_PAYLOAD ? malloc(message->length) : message->payload.bytes;

    if (!memory)
        return false;
    if (message->length && payload)
        memcpy(memory, payload, message->length);
    if (message->length > OFPI_SHORT_PAYLOAD)
        message->payload.memory = memory;
    return true;
}

static struct ofpi_unexpected *kept_new(struct ofpi_unexpected_messages *unexpected, struct ofp_endpoint *endpoint,
                                        const struct ofp_message *message, bool announced)
{
    struct ofpi_unexpected *kept = ofpi_slab_take(&unexpected->slab);

    if (!kept)
        return NULL;
    kept->source = message->source;
    kept->channel = message->channel;
    kept->has_data = message->has_data;
    kept->announced = announced;
    kept->tag = message->tag;
    kept->data = message->data;
    kept->length = message->length;
    kept->endpoint = endpoint;
    kept->peer = announced ? message->peer : NULL;
    kept->extra = NULL;
    kept->extra_count = 0;
    kept->set_aside = kept->lent = kept->counted = false;
    kept->error = 0;
    if (announced) {
        memcpy(kept->payload.provider_data, message->provider_data, sizeof(kept->payload.provider_data));
        kept->way = message->extras & OFP_EXTRA_WAY ? (uint8_t)message->spare[OFP_SPARE_WAY] : 0;
        kept->payload.of_peer = (struct ofp_list){0};
    }
    return kept;
}

/* Enter a message into the counts and bounds; uncount_kept() takes it out. */
static void count_kept(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *kept)
{
    unexpected->messages++;
    unexpected->announced += kept->announced || kept->counted;
    if (kept->announced) {
        if (kept->peer)
            ofp_list_append(&((struct ofpi_peer *)kept->peer)->announced, &kept->payload.of_peer);
        return;
    }
    unexpected->bytes += kept->length;
    if (kept->counted)
        return;
    unexpected->memory += memory_of(kept);
    if (unexpected->memory >= unexpected->memory_limit)
        unexpected->announce_only = true;
}

static void uncount_kept(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    unexpected->messages--;
    unexpected->announced -= message->announced || message->counted;
    if (message->announced) {
        if (message->peer)
            ofp_list_remove(&message->payload.of_peer);
        return;
    }
    unexpected->bytes -= message->length;
    if (message->counted)
        return;
    unexpected->memory -= memory_of(message);
    if (unexpected->memory < unexpected->memory_limit / 2)
        unexpected->announce_only = false;
}

static struct ofpi_unexpected *enter_kept(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *kept)
{
    kept->first.sequence = unexpected->next_sequence++;
    count_kept(unexpected, kept);
    return kept;
}

struct ofpi_unexpected *ofpi_unexpected_keep(struct ofpi_unexpected_messages *unexpected, struct ofp_endpoint *endpoint,
                                             const struct ofp_message *message, const void *payload, bool announced,
                                             bool wanted)
{
    struct ofpi_unexpected *kept = kept_new(unexpected, endpoint, message, announced);

    if (!kept)
        return NULL;
    if (!has_room(unexpected, kept, wanted) || (!announced && !copy_payload(kept, payload))) {
        ofpi_slab_give(&unexpected->slab, kept);
        return NULL;
    }
    return enter_kept(unexpected, kept);
}

struct ofpi_unexpected *ofpi_unexpected_keep_place(struct ofpi_unexpected_messages *unexpected,
                                                   struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                                   enum ofp_room room, bool wanted)
{
    struct ofpi_unexpected *kept = kept_new(unexpected, endpoint, message, false);

    if (!kept)
        return NULL;
    kept->counted = room == OFP_ROOM_ANNOUNCED && message->length <= OFP_SHORT_MESSAGE;
    if ((room != OFP_ROOM_PROMISED && !has_room(unexpected, kept, wanted)) || !copy_payload(kept, NULL)) {
        ofpi_slab_give(&unexpected->slab, kept);
        return NULL;
    }
    return enter_kept(unexpected, kept);
}

/* Whether it has room as one that is here. */
static bool has_room_here(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    bool result;

    message->announced = false;
    result = has_room(unexpected, message, true);
    message->announced = true;
    return result;
}

int ofpi_unexpected_make_place(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message,
                               const struct ofpi_receiver *lender)
{
    bool is_long = message->length > OFPI_SHORT_PAYLOAD;
    void *memory = NULL;

    OFPI_CHECK(message->announced && !message->error && (is_long || !lender));
    if (!lender && !has_room_here(unexpected, message))
        return -ENOBUFS;
    if (is_long && !lender && !(memory = malloc(message->length)))
        return -ENOMEM;
    uncount_kept(unexpected, message);
    message->announced = false;
    message->filling = NULL;
    message->lent = lender != NULL;
    if (lender)
        message->payload.lender = *lender;
    if (is_long)
        message->payload.memory = lender ? lender->memory.iov_base : memory;
    count_kept(unexpected, message);
    return 0;
}

void ofpi_unexpected_lose(struct ofpi_unexpected *message, int error)
{
    OFPI_CHECK(message->announced && message->peer && !message->error);
    ofp_list_remove(&message->payload.of_peer);
    message->peer = NULL;
    message->error = error;
}

void ofpi_unexpected_free(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    struct ofpi_extra_node *extra = message->extra, *next;

    uncount_kept(unexpected, message);
    free_payload(message);
    for (; extra; extra = next) {
        next = extra->next;
        ofpi_slab_give(&unexpected->extra_slab, extra);
    }
    ofpi_slab_give(&unexpected->slab, message);
}

struct ofp_message ofpi_unexpected_message(const struct ofpi_unexpected *message)
{
    struct ofp_message result = {
        .peer = message->announced ? message->peer : NULL,
        .source = message->source,
        .channel = message->channel,
        .has_data = message->has_data,
        .tag = message->tag,
        .data = message->data,
        .length = message->length,
    };

    if (message->announced) {
        memcpy(result.provider_data, message->payload.provider_data, sizeof(result.provider_data));
        result.spare[OFP_SPARE_WAY] = message->way;
        result.extras = OFP_EXTRA_WAY;
    }
    return result;
}
