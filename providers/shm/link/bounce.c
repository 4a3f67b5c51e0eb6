/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner's bounce buffers. The pool of free buffers is private to the owner. A receiver returns a buffer by storing
 * the generation of its use into the buffer's state word, which the owner reads when it needs a buffer. The lowest free
 * buffer is preferred: it was used last and is in the cache. Whole messages may stay in their buffers without a time
 * limit until they are matched. So a quarter of the buffers is reserved for fragments, whose receive is already posted:
 * the message for which the receiver waits may need them. A peer that returns no buffer can occupy at most twice as
 * many as are free for the others, never all.
 */
#include "link/bounce.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/publish.h"
#include "memory/segment.h"

/*
 * Bytes of fragments in flight to one receiver. More bytes leave the caches before they are read: windows of 64
 * messages of 64 KiB were three times as fast with 256 KiB as with 768.
 */
#define AHEAD (UINT32_C(256) << 10)
/* Occupied buffers at the bottom that are checked before a higher free one is used. */
#define LOOKS 4

int shm_bounce_open(struct shm_endpoint *endpoint)
{
    struct shm_bounce_pool *pool = &endpoint->bounce;
    uint32_t count = endpoint->segment.bounce_count;

    pool->buffers = calloc(count, sizeof(*pool->buffers));
    pool->free_bits = calloc((count + 63) / 64, sizeof(*pool->free_bits));
    if (!pool->buffers || !pool->free_bits) {
        shm_bounce_close(endpoint);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++)
        pool->free_bits[i / 64] |= UINT64_C(1) << i % 64;
    pool->free_count = count;
    return 0;
}

void shm_bounce_close(struct shm_endpoint *endpoint)
{
    free(endpoint->bounce.buffers);
    free(endpoint->bounce.free_bits);
    endpoint->bounce = (struct shm_bounce_pool){0};
}

void shm_bounce_free(struct shm_endpoint *endpoint, uint32_t index)
{
    struct shm_bounce_pool *pool = &endpoint->bounce;

    struct shm_bounce_buffer *buffer = &pool->buffers[index];

    OFP_CHECK(buffer->fragment ? buffer->user->fragments_used > 0 : buffer->user->bounce_used > 0);
    if (buffer->fragment)
        buffer->user->fragments_used--;
    else
        buffer->user->bounce_used--;
    pool->buffers[index].user = NULL;
    OFP_CHECK(pool->free_count < endpoint->segment.bounce_count && !(pool->free_bits[index / 64] >> index % 64 & 1));
    pool->free_bits[index / 64] |= UINT64_C(1) << index % 64;
    pool->free_count++;
}

void shm_bounce_reclaim(struct shm_link *link)
{
    struct shm_endpoint *endpoint = link->endpoint;

    for (uint32_t i = 0; i < endpoint->segment.bounce_count && (link->bounce_used || link->fragments_used); i++)
        if (endpoint->bounce.buffers[i].user == link)
            shm_bounce_free(endpoint, i);
}

void shm_bounce_repair(struct shm_endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->segment.bounce_count; i++) {
        const struct shm_bounce_buffer *buffer = &endpoint->bounce.buffers[i];

        /* Acquire pairs with shm_ring_free, before which comes shm_bounce_return. */
        if (buffer->user && buffer->slot && ofp_load_acquire(&buffer->slot->state) != buffer->slot_state)
            shm_bounce_free(endpoint, i);
    }
}

void shm_bounce_clear(struct shm_endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->segment.bounce_count; i++)
        if (endpoint->bounce.buffers[i].user)
            shm_bounce_free(endpoint, i);
    endpoint->bounce.reserved = endpoint->bounce.refused = false;
}

/* Free the buffer if the peer has returned it. True: the buffer is free. */
static bool collect_buffer(struct shm_endpoint *endpoint, uint32_t index)
{
    struct shm_bounce_buffer *buffer = &endpoint->bounce.buffers[index];

    if (!buffer->user)
        return true;
    /* Acquire pairs with shm_bounce_return: the peer's reads of the buffer come before our next write. */
    if (ofp_load_acquire(&endpoint->segment.bounce_states[index].freed) != buffer->generation)
        return false;
    shm_bounce_free(endpoint, index);
    return true;
}

static void collect_buffers(struct shm_endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->segment.bounce_count; i++)
        collect_buffer(endpoint, i);
}

/* There is at least one free buffer. */
static int find_lowest_free_buffer(struct shm_endpoint *endpoint)
{
    uint32_t count = endpoint->segment.bounce_count;

    for (uint32_t i = 0; i < LOOKS && i < count; i++)
        if (collect_buffer(endpoint, i))
            return (int)i;
    for (uint32_t word = 0;; word++)
        if (endpoint->bounce.free_bits[word])
            return (int)(word * 64) + __builtin_ctzll(endpoint->bounce.free_bits[word]);
}

/* Back the buffers at the first use: most endpoints that send only small messages never need the memory. */
static int reserve_buffers(struct shm_endpoint *endpoint)
{
    char text[OFP_TEXT_MAX] = "";

    if (endpoint->bounce.refused)
        return -ENOMEM;
    if (shm_segment_reserve_bounce(&endpoint->segment, endpoint->segment_fd, text, sizeof(text)) != 0) {
        shm_core->log(OFP_LOG_WARNING, SHM_NAME, "no bounce buffers, messages of medium size go slower: %s", text);
        endpoint->bounce.refused = true;
        return -ENOMEM;
    }
    endpoint->bounce.reserved = true;
    return 0;
}

static bool has_link_its_share(const struct shm_link *link, bool fragment)
{
    uint32_t count = link->endpoint->segment.bounce_count, free_count = link->endpoint->bounce.free_count;
    uint32_t reserve = (count + 3) / 4;

    if (fragment)
        return !free_count || link->fragments_used > 2 * free_count ||
               link->fragments_used * link->endpoint->segment.bounce_size >= AHEAD;
    return free_count <= reserve || link->bounce_used > 2 * (free_count - reserve);
}

bool shm_bounce_collect(struct shm_link *link)
{
    struct shm_endpoint *endpoint = link->endpoint;

    /*
     * Ordered loads: SHM_SLEEPING was set before. Pairs with shm_bounce_return, which checks that bit after it has
     * returned the buffer.
     */
    for (uint32_t i = 0; i < endpoint->segment.bounce_count; i++)
        if (endpoint->bounce.buffers[i].user &&
            ofp_load_ordered(&endpoint->segment.bounce_states[i].freed) == endpoint->bounce.buffers[i].generation)
            shm_bounce_free(endpoint, i);
    return !has_link_its_share(link, true);
}

int shm_bounce_check(struct shm_link *link, bool fragment)
{
    if (link->endpoint->bounce.refused)
        return -ENOMEM;
    if (!has_link_its_share(link, fragment))
        return 0;
    collect_buffers(link->endpoint);
    return has_link_its_share(link, fragment) ? -EAGAIN : 0;
}

int shm_bounce_allocate(struct shm_link *link, bool fragment)
{
    struct shm_endpoint *endpoint = link->endpoint;
    struct shm_bounce_pool *pool = &endpoint->bounce;
    int index, result;

    if (SHM_UNLIKELY(!pool->reserved) && reserve_buffers(endpoint) != 0)
        return -ENOMEM;
    result = shm_bounce_check(link, fragment);
    if (result)
        return result;
    index = find_lowest_free_buffer(endpoint);
    OFP_CHECK(pool->free_count > 0 && !pool->buffers[index].user);
    pool->free_bits[index / 64] &= ~(UINT64_C(1) << index % 64);
    pool->free_count--;
    pool->buffers[index].generation++;
    pool->buffers[index].user = link;
    pool->buffers[index].fragment = fragment;
    pool->buffers[index].pending = 0;
    pool->buffers[index].slot = NULL;
    if (fragment)
        link->fragments_used++;
    else
        link->bounce_used++;
    return index;
}

/* ------------------------------------------------------------------------------------------- the receiver's side */

bool shm_bounce_is_valid(const struct shm_link *link, const struct shm_bounce_fields *fields, uint64_t length)
{
    return fields->index < link->segment.bounce_count && length <= link->segment.bounce_size;
}

void shm_bounce_return(struct shm_link *link, const struct shm_bounce_fields *fields, bool wake)
{
    _Atomic uint32_t *freed = &link->segment.bounce_states[fields->index].freed;

    OFP_SHM_STEP(bounce_received);
    /* Release: the buffer has been read. Pairs with collect_buffer. */
    if (!wake) {
        ofp_store_release(freed, fields->generation);
        return;
    }
    /* The sender sets SHM_SLEEPING, then checks for a free buffer: shm_pushes_can_move. */
    ofp_publish(freed, fields->generation);
    if (ofp_load_ordered(&link->ring.header->status) & SHM_SLEEPING)
        shm_owner_notify(link, SHM_SLEEPING);
}
