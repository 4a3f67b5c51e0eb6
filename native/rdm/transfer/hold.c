/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/hold.h"

#include <stdlib.h>

static struct ofpi_rdm_holds *hold_each(struct ofpi_rdm_path *path, struct ofpi_rdm_holds *holds, uint32_t access)
{
    for (uint32_t i = 0; i < holds->count; i++) {
        if (path->base.channel->ops->hold(&path->base, &holds->memory[i], access) != 0) {
            holds->count = i;
            return NULL;
        }
    }
    return holds;
}

struct ofpi_rdm_holds *ofpi_rdm_hold(struct ofpi_rdm_path *path, const struct iovec *iov,
                                     struct ofp_region *const *regions, uint32_t count, uint64_t length,
                                     uint32_t access)
{
    struct ofpi_rdm_holds *holds;

    if (!(path->base.channel->ops->properties & (OFPI_CHANNEL_GET | OFPI_CHANNEL_PUT)))
        return NULL;
    holds = calloc(1, sizeof(*holds) + count * sizeof(holds->memory[0]));
    if (!holds)
        return NULL;
    for (uint32_t i = 0; i < count && length; i++) {
        uint64_t size = iov[i].iov_len < length ? iov[i].iov_len : length;

        if (size)
            holds->memory[holds->count++] =
                (struct ofpi_memory){.base = iov[i].iov_base, .length = size, .region = regions ? regions[i] : NULL};
        length -= size;
    }
    ofp_list_append(&path->holds, &holds->node);
    if (holds->count && hold_each(path, holds, access))
        return holds;
    ofpi_rdm_let_go(path, holds);
    return NULL;
}

static void release(struct ofpi_rdm_path *path, struct ofpi_rdm_holds *holds)
{
    while (holds->count)
        path->base.channel->ops->release(&path->base, &holds->memory[--holds->count]);
}

void ofpi_rdm_let_go(struct ofpi_rdm_path *path, struct ofpi_rdm_holds *holds)
{
    if (!holds)
        return;
    release(path, holds);
    ofp_list_remove(&holds->node);
    free(holds);
}

void ofpi_rdm_let_all_go(struct ofpi_rdm_path *path)
{
    for (struct ofp_list *node = path->holds.next; node != &path->holds; node = node->next)
        release(path, OFP_CONTAINER_OF(node, struct ofpi_rdm_holds, node));
}

void ofpi_rdm_describe(const struct ofpi_rdm_holds *holds, struct ofpi_rdm_packet *header)
{
    header->count = (uint8_t)(holds ? holds->count : 0);
    for (uint32_t i = 0; i < header->count; i++)
        header->pieces[i] =
            (struct ofpi_rdm_piece){holds->memory[i].address, holds->memory[i].length, holds->memory[i].key};
}
