/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/unexpected.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/slab.h"
#include "match/match_index.h"
#include "object/count.h"

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
    if (!message->announced && !message->borrowed && message->length > OFPI_SHORT_PAYLOAD)
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

/* ---------------------------------------------------------------------------------------------- storage and bounds */

/*
 * The memory that a message which is not announced uses. Borrowed memory belongs to the program, so it is not counted.
 * Extra nodes are not counted either: the receiving program's masks cause them, and OFPI_UNEXPECTED_CLASSES limits
 * their number.
 */
static uint64_t compute_message_memory(const struct ofpi_unexpected *message)
{
    return sizeof(*message) + (message->length > OFPI_SHORT_PAYLOAD && !message->borrowed ? message->length : 0);
}

static bool check_bound_of_message(struct ofpi_unexpected_messages *unexpected, const struct ofpi_unexpected *message,
                                   bool wanted)
{
    /* Messages with OFP_ROOM_PROMISED, or that a receive wants, may have exceeded the limit. */
    uint64_t used = unexpected->memory < unexpected->memory_limit ? unexpected->memory : unexpected->memory_limit;
    uint64_t room = unexpected->memory_limit - used;
    bool is_short = message->length <= OFPI_SHORT_PAYLOAD;

    if (message->announced || message->counted)
        return wanted || unexpected->announced < unexpected->announcement_limit;
    if (wanted && is_short)
        return true;
    /* Do not add to the length, as compute_message_memory does: the peer chooses it, and the sum might wrap around. */
    if (room >= sizeof(*message) && (is_short || message->length <= room - sizeof(*message)))
        return true;
    /* A message that alone is too long for the bound is no reason to throttle others. */
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

static struct ofpi_unexpected *create_unexpected(struct ofpi_unexpected_messages *unexpected,
                                                 struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                                 bool announced)
{
    struct ofpi_unexpected *stored = ofpi_slab_allocate(&unexpected->slab);

    if (!stored)
        return NULL;
    stored->source = message->source;
    stored->channel = message->channel;
    stored->has_data = message->has_data;
    stored->protocol = ofpi_protocol_of_message(message);
    stored->announced = announced;
    stored->tag = message->tag;
    stored->data = message->data;
    stored->length = message->length;
    stored->endpoint = endpoint;
    stored->peer = announced ? message->peer : NULL;
    stored->extra = NULL;
    stored->extra_count = 0;
    stored->set_aside = stored->borrowed = stored->counted = stored->bound = false;
    stored->error = 0;
    stored->incarnation = message->peer ? ((const struct ofpi_peer *)message->peer)->number : 0;
    if (announced) {
        memcpy(stored->payload.provider_data, message->provider_data, sizeof(stored->payload.provider_data));
        stored->lane = message->extras & OFP_EXTRA_WAY ? (uint8_t)message->spare[OFP_SPARE_WAY] : 0;
        stored->payload.of_peer = (struct ofp_list){0};
    }
    return stored;
}

/* The peer of this index: an index that has left the vector names none, and none is named twice. */
static struct ofpi_peer *find_sender(const struct ofpi_unexpected *message)
{
    return ofpi_peer_find_at((const struct ofpi_endpoint *)message->endpoint, message->source);
}

static void add_to_sender(const struct ofpi_unexpected *message)
{
    struct ofpi_peer *peer = find_sender(message);

    if (peer)
        peer->unexpected++;
}

static void remove_from_sender(const struct ofpi_unexpected *message)
{
    struct ofpi_peer *peer = find_sender(message);

    /* A peer that was created after the message does not count it. */
    if (peer && peer->unexpected)
        peer->unexpected--;
}

/* Add a message to the counts that the bounds limit; remove_from_counts() is the reverse. */
static void add_to_counts(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *stored)
{
    unexpected->messages++;
    unexpected->announced += stored->announced || stored->counted;
    if (stored->announced) {
        if (stored->peer)
            ofp_list_append(&((struct ofpi_peer *)stored->peer)->announced, &stored->payload.of_peer);
        return;
    }
    unexpected->bytes += stored->length;
    if (stored->counted)
        return;
    unexpected->memory += compute_message_memory(stored);
    if (unexpected->memory >= unexpected->memory_limit)
        unexpected->announce_only = true;
}

static void remove_from_counts(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    OFPI_CHECK(unexpected->messages && (message->announced || unexpected->bytes >= message->length));
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
    unexpected->memory -= compute_message_memory(message);
    if (unexpected->memory < unexpected->memory_limit / 2)
        unexpected->announce_only = false;
}

static struct ofpi_unexpected *add_unexpected(struct ofpi_unexpected_messages *unexpected,
                                              struct ofpi_unexpected *stored)
{
    stored->first.sequence = unexpected->next_sequence++;
    add_to_sender(stored);
    add_to_counts(unexpected, stored);
    return stored;
}

struct ofpi_unexpected *ofpi_unexpected_store(struct ofpi_unexpected_messages *unexpected,
                                              struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                              const void *payload, bool announced, bool wanted)
{
    struct ofpi_unexpected *stored = create_unexpected(unexpected, endpoint, message, announced);

    if (!stored)
        return NULL;
    if (!check_bound_of_message(unexpected, stored, wanted) || (!announced && !copy_payload(stored, payload))) {
        ofpi_slab_free(&unexpected->slab, stored);
        return NULL;
    }
    return add_unexpected(unexpected, stored);
}

struct ofpi_unexpected *ofpi_unexpected_reserve(struct ofpi_unexpected_messages *unexpected,
                                                struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                                enum ofp_room room, bool wanted)
{
    struct ofpi_unexpected *stored = create_unexpected(unexpected, endpoint, message, false);

    if (!stored)
        return NULL;
    stored->counted = room == OFP_ROOM_ANNOUNCED && message->length <= OFP_SHORT_MESSAGE;
    if ((room != OFP_ROOM_PROMISED && !check_bound_of_message(unexpected, stored, wanted)) ||
        !copy_payload(stored, NULL)) {
        ofpi_slab_free(&unexpected->slab, stored);
        return NULL;
    }
    return add_unexpected(unexpected, stored);
}

/* Whether an announced message is within the bound on memory, with its payload. */
static bool check_bound_of_payload(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    bool result;

    message->announced = false;
    result = check_bound_of_message(unexpected, message, true);
    message->announced = true;
    return result;
}

int ofpi_unexpected_allocate_payload(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message,
                                     const struct ofpi_receiver *borrowed_from)
{
    bool is_long = message->length > OFPI_SHORT_PAYLOAD;
    void *memory = NULL;

    OFPI_CHECK(message->announced && !message->error && (is_long || !borrowed_from));
    if (!borrowed_from && !check_bound_of_payload(unexpected, message))
        return -ENOBUFS;
    if (is_long && !borrowed_from && !(memory = malloc(message->length)))
        return -ENOMEM;
    remove_from_counts(unexpected, message);
    message->announced = false;
    message->filling = NULL;
    message->borrowed = borrowed_from != NULL;
    if (borrowed_from)
        message->payload.borrowed_from = *borrowed_from;
    if (is_long)
        message->payload.memory = borrowed_from ? borrowed_from->memory.iov_base : memory;
    add_to_counts(unexpected, message);
    return 0;
}

void ofpi_unexpected_mark_lost(struct ofpi_unexpected *message, int error)
{
    OFPI_CHECK(message->announced && message->peer && !message->error && error <= INT16_MAX);
    ofp_list_remove(&message->payload.of_peer);
    message->peer = NULL;
    message->error = (int16_t)error;
}

void ofpi_unexpected_free(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    struct ofpi_extra_node *extra = message->extra, *next;

    remove_from_sender(message);
    remove_from_counts(unexpected, message);
    free_payload(message);
    for (; extra; extra = next) {
        next = extra->next;
        ofpi_slab_free(&unexpected->extra_slab, extra);
    }
    ofpi_slab_free(&unexpected->slab, message);
}

struct ofp_message ofpi_message_of_unexpected(const struct ofpi_unexpected *message)
{
    struct ofp_message result = {
        .peer = message->announced ? message->peer : NULL,
        .source = message->source,
        .channel = message->channel,
        .has_data = message->has_data,
        .protocol = message->protocol,
        .extras = OFP_EXTRA_PROTOCOL,
        .tag = message->tag,
        .data = message->data,
        .length = message->length,
    };

    if (message->announced) {
        memcpy(result.provider_data, message->payload.provider_data, sizeof(result.provider_data));
        result.spare[OFP_SPARE_WAY] = message->lane;
        result.extras |= OFP_EXTRA_WAY;
    }
    return result;
}
