/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of blocks, one for each operation at libfabric. Guarded by the domain's lock. */
#include <stdlib.h>

#include "bridge.h"

#define BLOCKS_PER_SLAB 64

struct bridge_slab {
    struct bridge_slab *next;
    struct bridge_block blocks[BLOCKS_PER_SLAB];
};

static bool add_slab(struct bridge_endpoint *endpoint)
{
    struct bridge_slab *slab = calloc(1, sizeof(*slab));

    if (!slab)
        return false;
    slab->next = endpoint->slabs;
    endpoint->slabs = slab;
    for (int i = 0; i < BLOCKS_PER_SLAB; i++) {
        slab->blocks[i].next = endpoint->free_blocks;
        endpoint->free_blocks = &slab->blocks[i];
    }
    return true;
}

struct bridge_block *bridge_block_allocate(struct bridge_endpoint *endpoint)
{
    struct bridge_block *block;

    if (!endpoint->free_blocks && !add_slab(endpoint))
        return NULL;
    block = endpoint->free_blocks;
    OFP_CHECK(!block->pending && !block->registered && block->sources == BRIDGE_NO_RECEIVE);
    endpoint->free_blocks = block->next;
    return block;
}

void bridge_block_release(struct bridge_block *block)
{
    for (uint32_t i = 0; i < block->registered; i++)
        block->regions[i]->fid.ops->close(&block->regions[i]->fid);
    block->registered = 0;
    free(block->copy);
    block->copy = NULL;
    block->scattered = false;
}

static void clear_block(struct bridge_block *block)
{
    bridge_block_release(block);
    block->pending = NULL;
    block->peer = NULL;
    block->is_send = block->is_completed = false;
    block->sources = BRIDGE_NO_RECEIVE;
}

void bridge_block_free(struct bridge_endpoint *endpoint, struct bridge_block *block)
{
    if (block->sources != BRIDGE_NO_RECEIVE)
        endpoint->receives[block->tagged][block->sources]--;
    OFP_CHECK(block->sources <= BRIDGE_ENDANGERED && block->registered <= OFP_SEGMENT_LIMIT + 2);
    clear_block(block);
    block->next = endpoint->free_blocks;
    endpoint->free_blocks = block;
}

bool bridge_receive_is_posted(const struct bridge_endpoint *endpoint, uint64_t bit)
{
    for (const struct bridge_slab *slab = endpoint->slabs; slab; slab = slab->next) {
        for (int i = 0; i < BLOCKS_PER_SLAB; i++) {
            const struct bridge_block *block = &slab->blocks[i];
            const struct ofp_pending *pending =
                block->sources == BRIDGE_NO_RECEIVE || !block->tagged ? NULL : bridge_pending_of(block);

            if (pending && (pending->operation.tag | pending->operation.ignore) & bit)
                return true;
        }
    }
    return false;
}

void bridge_slabs_free(struct bridge_slab *slabs)
{
    while (slabs) {
        struct bridge_slab *slab = slabs;

        slabs = slab->next;
        for (int i = 0; i < BLOCKS_PER_SLAB; i++)
            clear_block(&slab->blocks[i]);
        free(slab);
    }
}
