/* SPDX-License-Identifier: BSD-3-Clause */
#include "unexpected.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Payload above OFPI_SHORT_PAYLOAD up to this comes from a slab, more from malloc. */
#define SLAB_PAYLOAD 256

int ofpi_unexpected_open(struct ofpi_unexpected_messages *unexpected, const uint64_t seed[2], uint64_t payload_limit,
                         uint64_t count_limit)
{
    int result;

    *unexpected = (struct ofpi_unexpected_messages){.payload_limit = payload_limit, .count_limit = count_limit};
    ofp_list_init(&unexpected->order);
    ofp_list_init(&unexpected->set_aside);
    ofpi_slab_open(&unexpected->slab, sizeof(struct ofpi_unexpected));
    ofpi_slab_open(&unexpected->extra_slab, sizeof(struct ofpi_extra_node));
    ofpi_slab_open(&unexpected->payload_slab, SLAB_PAYLOAD);
    unexpected->classes[0].named = true;
    unexpected->class_count = 1;
    result = ofpi_match_index_open(&unexpected->classes[0].index, seed);
    if (!result)
        result = ofpi_match_index_open(&unexpected->set_aside_index, seed);
    if (result)
        ofpi_unexpected_close(unexpected);
    return result;
}

static void free_payload(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    if (message->announced || message->length <= OFPI_SHORT_PAYLOAD)
        return;
    if (message->length <= SLAB_PAYLOAD)
        ofpi_slab_give(&unexpected->payload_slab, message->payload.memory);
    else
        free(message->payload.memory);
}

static void free_payloads(struct ofpi_unexpected_messages *unexpected, struct ofp_list *list)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, list)
        free_payload(unexpected, OFP_CONTAINER_OF(node, struct ofpi_unexpected, order));
}

void ofpi_unexpected_close(struct ofpi_unexpected_messages *unexpected)
{
    free_payloads(unexpected, &unexpected->order);
    free_payloads(unexpected, &unexpected->set_aside);
    for (uint32_t i = 0; i < unexpected->class_count; i++)
        ofpi_match_index_close(&unexpected->classes[i].index);
    ofpi_match_index_close(&unexpected->set_aside_index);
    ofpi_slab_close(&unexpected->slab);
    ofpi_slab_close(&unexpected->extra_slab);
    ofpi_slab_close(&unexpected->payload_slab);
}

/* ---------------------------------------------------------------------------------------------- keeping and bounds */

static bool bounded_by_number(const struct ofpi_unexpected *message)
{
    return message->announced || message->length <= OFPI_SHORT_PAYLOAD;
}

static bool has_room(struct ofpi_unexpected_messages *unexpected, const struct ofpi_unexpected *message, bool wanted)
{
    uint64_t used = unexpected->bytes < unexpected->payload_limit ? unexpected->bytes : unexpected->payload_limit;

    if (bounded_by_number(message))
        return wanted || unexpected->counted < unexpected->count_limit;
    if (message->length <= unexpected->payload_limit - used)
        return true;
    /* One message that is too long for the bound by itself is no reason to throttle the others. */
    if (used >= unexpected->payload_limit / 2)
        unexpected->announce_only = true;
    return false;
}

static bool copy_payload(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message,
                         const void *payload)
{
    void *memory = message->payload.bytes;

    if (message->length > SLAB_PAYLOAD)
        memory = malloc(message->length);
    else if (message->length > OFPI_SHORT_PAYLOAD)
        memory = ofpi_slab_take(&unexpected->payload_slab);
    if (!memory)
        return false;
    if (message->length && payload)
        memcpy(memory, payload, message->length);
    if (message->length > OFPI_SHORT_PAYLOAD)
        message->payload.memory = memory;
    return true;
}

static void count_kept(struct ofpi_unexpected_messages *unexpected, const struct ofpi_unexpected *message)
{
    unexpected->messages++;
    unexpected->counted += bounded_by_number(message);
    unexpected->announced += message->announced;
    if (message->announced)
        return;
    unexpected->bytes += message->length;
    if (unexpected->bytes >= unexpected->payload_limit && message->length > OFPI_SHORT_PAYLOAD)
        unexpected->announce_only = true;
}

static struct ofpi_unexpected *kept_new(struct ofpi_unexpected_messages *unexpected, struct ofp_endpoint *endpoint,
                                        const struct ofp_message *message, bool announced)
{
    struct ofpi_unexpected *kept = ofpi_slab_take(&unexpected->slab);

    if (!kept)
        return NULL;
    kept->source = message->source;
    kept->tagged = message->tagged;
    kept->has_data = message->has_data;
    kept->announced = announced;
    kept->tag = message->tag;
    kept->data = message->data;
    kept->length = message->length;
    kept->endpoint = endpoint;
    kept->peer = announced ? message->peer : NULL;
    kept->extra = NULL;
    kept->extra_count = 0;
    kept->error = 0;
    if (announced)
        memcpy(kept->payload.provider_data, message->provider_data, sizeof(kept->payload.provider_data));
    return kept;
}

static struct ofpi_unexpected *enter(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *kept)
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
    if (!has_room(unexpected, kept, wanted) || (!announced && !copy_payload(unexpected, kept, payload))) {
        ofpi_slab_give(&unexpected->slab, kept);
        return NULL;
    }
    return enter(unexpected, kept);
}

struct ofpi_unexpected *ofpi_unexpected_keep_promised(struct ofpi_unexpected_messages *unexpected,
                                                      struct ofp_endpoint *endpoint, const struct ofp_message *message)
{
    struct ofpi_unexpected *kept = kept_new(unexpected, endpoint, message, false);

    if (!kept)
        return NULL;
    if (!copy_payload(unexpected, kept, NULL)) {
        ofpi_slab_give(&unexpected->slab, kept);
        return NULL;
    }
    return enter(unexpected, kept);
}

void ofpi_unexpected_free(struct ofpi_unexpected_messages *unexpected, struct ofpi_unexpected *message)
{
    struct ofpi_extra_node *extra = message->extra, *next;

    unexpected->messages--;
    unexpected->counted -= bounded_by_number(message);
    unexpected->announced -= message->announced;
    if (!message->announced)
        unexpected->bytes -= message->length;
    if (unexpected->bytes < unexpected->payload_limit / 2)
        unexpected->announce_only = false;
    free_payload(unexpected, message);
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
        .tagged = message->tagged,
        .has_data = message->has_data,
        .tag = message->tag,
        .data = message->data,
        .length = message->length,
    };

    if (message->announced)
        memcpy(result.provider_data, message->payload.provider_data, sizeof(result.provider_data));
    return result;
}
