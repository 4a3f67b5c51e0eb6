/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/buffers.h"

#include <stddef.h>

#include "ofipy/check.h"

static struct verbs_buffer *buffer_of_node(struct ofp_list *node)
{
    return OFP_CONTAINER_OF(node, struct verbs_buffer, node);
}

void verbs_buffers_init(struct verbs_buffers *buffers, struct verbs_buffer *all, uint32_t wanted)
{
    *buffers = (struct verbs_buffers){.all = all, .wanted = wanted};
    ofp_list_init(&buffers->posted);
    ofp_list_init(&buffers->reserve);
    ofp_list_init(&buffers->holders);
    buffers->fresh = &buffers->posted;
}

/* Each holder has at most one overtaken buffer. */
static uint32_t count_lost_least(const struct verbs_buffers *buffers)
{
    return buffers->overtaken > buffers->holder_count ? buffers->overtaken - buffers->holder_count : 0;
}

uint32_t verbs_buffers_count_usable(const struct verbs_buffers *buffers)
{
    return buffers->count - buffers->reserved - count_lost_least(buffers);
}

static void add_to_reserve(struct verbs_buffers *buffers, struct verbs_buffer *buffer)
{
    ofp_list_prepend(&buffers->reserve, &buffer->node);
    buffers->reserved++;
    OFP_CHECK(buffers->reserved <= buffers->count);
}

void verbs_buffers_return(struct verbs_buffers *buffers, uint32_t index)
{
    struct verbs_buffer *buffer = &buffers->all[index];

    OFP_CHECK(!ofp_list_linked(&buffer->node));
    if (!buffer->number)
        buffers->count++;
    add_to_reserve(buffers, buffer);
}

bool verbs_buffers_pop(struct verbs_buffers *buffers, uint32_t *index)
{
    struct verbs_buffer *buffer;

    if (!buffers->reserved || verbs_buffers_count_usable(buffers) >= buffers->wanted)
        return false;
    buffer = buffer_of_node(ofp_list_pop(&buffers->reserve));
    buffers->reserved--;
    buffer->number = ++buffers->last_number;
    ofp_list_append(&buffers->posted, &buffer->node);
    if (buffers->fresh == &buffers->posted)
        buffers->fresh = &buffer->node;
    *index = (uint32_t)(buffer - buffers->all);
    return true;
}

/* All buffers before this one were taken by the device before it. */
static void advance_fresh_buffer(struct verbs_buffers *buffers, struct verbs_buffer *completed)
{
    while (buffers->fresh != &completed->node) {
        buffers->fresh = buffers->fresh->next;
        buffers->overtaken++;
        buffers->changed = true;
    }
    buffers->fresh = completed->node.next;
    buffers->highest = completed->number;
}

void verbs_buffers_complete(struct verbs_buffers *buffers, uint32_t index, struct verbs_holder *holder)
{
    struct verbs_buffer *buffer = &buffers->all[index];

    OFP_CHECK(ofp_list_linked(&buffer->node) && buffer->number <= buffers->last_number);
    if (buffer->number > buffers->highest) {
        advance_fresh_buffer(buffers, buffer);
    } else {
        OFP_CHECK(buffers->overtaken > 0);
        buffers->overtaken--;
    }
    if (buffers->overtaken)
        buffers->changed = true;
    ofp_list_remove(&buffer->node);
    /* The queue pair took its next buffer after this completion, so after all that completed before. */
    if (holder)
        holder->horizon = buffers->highest;
}

void verbs_holder_add(struct verbs_buffers *buffers, struct verbs_holder *holder)
{
    holder->horizon = buffers->highest;
    ofp_list_append(&buffers->holders, &holder->node);
    buffers->holder_count++;
}

void verbs_holder_remove(struct verbs_buffers *buffers, struct verbs_holder *holder)
{
    ofp_list_remove(&holder->node);
    OFP_CHECK(buffers->holder_count > 0);
    buffers->holder_count--;
    buffers->suspect_number = buffers->last_number;
    buffers->changed = true;
}

static uint64_t find_lowest_horizon(const struct verbs_buffers *buffers)
{
    uint64_t lowest = UINT64_MAX;

    for (const struct ofp_list *node = buffers->holders.next; node != &buffers->holders; node = node->next) {
        const struct verbs_holder *holder = OFP_CONTAINER_OF(node, const struct verbs_holder, node);

        if (holder->horizon < lowest)
            lowest = holder->horizon;
    }
    return lowest;
}

/* The oldest buffer at the device, if it is overtaken and a queue pair has ended since its post. */
static struct verbs_buffer *find_oldest_suspect(const struct verbs_buffers *buffers)
{
    struct verbs_buffer *oldest = buffer_of_node(buffers->posted.next);

    if (&oldest->node == buffers->fresh || oldest->number > buffers->suspect_number)
        return NULL;
    return oldest;
}

void verbs_buffers_reclaim(struct verbs_buffers *buffers)
{
    struct verbs_buffer *buffer = find_oldest_suspect(buffers);
    uint64_t horizon = buffer ? find_lowest_horizon(buffers) : 0;

    buffers->changed = false;
    while (buffer && buffer->number < horizon) {
        ofp_list_remove(&buffer->node);
        OFP_CHECK(buffers->overtaken > 0);
        buffers->overtaken--;
        buffers->reclaimed++;
        add_to_reserve(buffers, buffer);
        buffer = find_oldest_suspect(buffers);
    }
}
