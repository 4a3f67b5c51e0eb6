/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory: regions registered with libfabric, and the temporary registrations of operations on memory without one.
 *
 * A temporary registration ends with its operation. None is kept for the next one: nobody would tell the bridge when the
 * memory behind it is unmapped. Providers with expensive registration keep a cache below, with hooks that do know.
 */
#include <errno.h>

#include "bridge.h"

static const struct {
    uint32_t ours;
    uint64_t theirs;
} rights[] = {
    {OFP_ACCESS_SEND, LF_SEND},
    {OFP_ACCESS_RECV, LF_RECV},
    {OFP_ACCESS_READ, LF_READ},
    {OFP_ACCESS_WRITE, LF_WRITE},
    {OFP_ACCESS_REMOTE_READ, LF_REMOTE_READ},
    {OFP_ACCESS_REMOTE_WRITE, LF_REMOTE_WRITE},
};

static int register_memory(struct bridge_domain *domain, void *base, size_t length, uint64_t access, uint64_t key,
                           struct lf_mr **mr)
{
    int result = domain->domain->mr->reg(&domain->domain->fid, base, length, access, 0, key, 0, mr, NULL);

    return result ? -bridge_error(result) : 0;
}

int bridge_region_open(struct ofp_region *region)
{
    struct bridge_domain *domain = bridge_domain_of(region->domain);
    int mr_mode = domain->info->domain_attr->mr_mode;
    uint64_t access = 0;
    struct lf_mr *mr;
    int result;

    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
        if (region->access & rights[i].ours)
            access |= rights[i].theirs;
    if (!(mr_mode & LF_MR_LOCAL) && !(access & (LF_REMOTE_READ | LF_REMOTE_WRITE)))
        return 0;
    result = register_memory(domain, region->base, region->length, access, region->key, &mr);
    if (result)
        return result;
    region->provider_data[0] = (uintptr_t)mr;
    region->key = mr->key;
    return 0;
}

void bridge_region_close(struct ofp_region *region)
{
    struct lf_mr *mr = (struct lf_mr *)(uintptr_t)region->provider_data[0];

    if (mr)
        mr->fid.ops->close(&mr->fid);
    region->provider_data[0] = 0;
}

static int describe(struct bridge_domain *domain, const struct iovec *iov, const struct ofp_region *region,
                    struct bridge_block *block, void **descriptor)
{
    const struct lf_mr *known = region ? (const struct lf_mr *)(uintptr_t)region->provider_data[0] : NULL;
    int result;

    *descriptor = known ? known->descriptor : NULL;
    if (known || !iov->iov_len)
        return 0;
    result = register_memory(domain, iov->iov_base, iov->iov_len, LF_SEND | LF_RECV | LF_READ | LF_WRITE, 0,
                             &block->regions[block->registered]);
    if (!result)
        *descriptor = block->regions[block->registered++]->descriptor;
    return result;
}

int bridge_descriptors(struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer, struct bridge_block *block,
                       void **descriptors)
{
    struct bridge_domain *domain = bridge_domain_of(endpoint->domain);

    for (uint32_t i = 0; i < transfer->iov_count; i++) {
        int result = describe(domain, &transfer->iov[i], transfer->regions[i], block, &descriptors[i]);

        if (result)
            return result;
    }
    return 0;
}
