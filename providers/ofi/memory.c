/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory: regions registered with libfabric, and the temporary registrations of operations on memory without a region.
 * A temporary registration ends with its operation. None is stored for later operations: the bridge would not notice
 * when its memory is unmapped. Providers with expensive registration have a cache, with hooks that do notice. `lock` of
 * the domain guards regions: they open and close without the core's lock.
 */
#include <errno.h>
#include <stdlib.h>

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

static bool needs_binding(const struct bridge_domain *domain)
{
    return domain->info->domain_attr->mr_mode & LF_MR_ENDPOINT;
}

/* Keys that no peer uses come from the upper end, since keys that users choose are small. */
static uint64_t choose_key(struct bridge_domain *domain, bool remote, uint64_t key)
{
    size_t size = domain->info->domain_attr->mr_key_size;

    if (!remote)
        key = LF_KEY_NOTAVAIL - 1 - atomic_fetch_add_explicit(&domain->next_key, 1, memory_order_relaxed);
    return size && size < sizeof(key) ? key & ((1ull << 8 * size) - 1) : key;
}

static int register_memory(struct bridge_domain *domain, void *base, size_t length, uint64_t access, uint64_t key,
                           struct lf_mr **mr)
{
    bool remote = access & (LF_REMOTE_READ | LF_REMOTE_WRITE);
    int result = domain->domain->mr->reg(&domain->domain->fid, base, length, access, 0, choose_key(domain, remote, key),
                                         0, mr, NULL);

    return result ? -bridge_error_convert(result) : 0;
}

static int bind_registration(struct lf_mr *mr, struct bridge_endpoint *endpoint)
{
    int result = mr->fid.ops->bind(&mr->fid, &endpoint->ep->fid, 0);

    if (!result)
        result = mr->fid.ops->control(&mr->fid, LF_COMMAND_ENABLE, NULL);
    return result ? -bridge_error_convert(result) : 0;
}

/* ---------------------------------------------------------------------------------------------------------- regions */

void bridge_regions_attach(struct ofp_endpoint *endpoint)
{
    struct bridge_domain *domain = bridge_domain_of(endpoint->domain);

    pthread_mutex_lock(&domain->lock);
    if (!domain->regions_home)
        domain->regions_home = bridge_endpoint_of(endpoint);
    pthread_mutex_unlock(&domain->lock);
}

void bridge_regions_detach(struct ofp_endpoint *endpoint)
{
    struct bridge_domain *domain = bridge_domain_of(endpoint->domain);
    struct ofp_list *node;

    pthread_mutex_lock(&domain->lock);
    if (domain->regions_home == bridge_endpoint_of(endpoint)) {
        domain->regions_home = NULL;
        while ((node = ofp_list_pop(&domain->regions))) {
            struct bridge_region *self = OFP_CONTAINER_OF(node, struct bridge_region, node);

            self->mr->fid.ops->close(&self->mr->fid);
            self->mr = NULL;
        }
    }
    pthread_mutex_unlock(&domain->lock);
}

/* Bind a region to the domain's first endpoint, if the provider requires an endpoint. */
static int bind_region(struct bridge_domain *domain, struct bridge_region *self)
{
    int result;

    pthread_mutex_lock(&domain->lock);
    if (domain->regions_home) {
        result = bind_registration(self->mr, domain->regions_home);
        if (!result)
            ofp_list_append(&domain->regions, &self->node);
    } else {
        bridge_core->log(OFP_LOG_ERROR, BRIDGE_NAME, "%s registers memory for an endpoint: open that first",
                         domain->info->fabric_attr->prov_name);
        result = -EDESTADDRREQ;
    }
    pthread_mutex_unlock(&domain->lock);
    return result;
}

static uint64_t convert_rights(const struct ofp_region *region)
{
    uint64_t access = 0;

    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
        if (region->access & rights[i].ours)
            access |= rights[i].theirs;
    return access;
}

int bridge_region_open(struct ofp_domain *handle, struct ofp_region *region)
{
    struct bridge_domain *domain = bridge_domain_of(handle);
    struct ofp_region_device *ours = ofp_region_device(handle, region);
    int mr_mode = domain->info->domain_attr->mr_mode;
    uint64_t access = convert_rights(region);
    bool remote = access & (LF_REMOTE_READ | LF_REMOTE_WRITE);
    struct bridge_region *self;
    int result;

    if (!(mr_mode & LF_MR_LOCAL) && !remote)
        return 0;
    self = calloc(1, sizeof(*self));
    if (!self)
        return -ENOMEM;
    result = register_memory(domain, region->base, region->length, access, ours->key, &self->mr);
    if (result)
        goto no_memory;
    if (needs_binding(domain))
        result = bind_region(domain, self);
    if (!result && remote && mr_mode & LF_MR_PROV_KEY && self->mr->key == LF_KEY_NOTAVAIL)
        result = -EOPNOTSUPP;
    ours->provider_data[0] = (uintptr_t)self;
    if (result) {
        bridge_region_close(handle, region);
        return result;
    }
    if (remote)
        ours->key = self->mr->key;
    ours->remote_base = remote && mr_mode & LF_MR_VIRT_ADDR ? (uintptr_t)region->base : 0;
    return 0;
no_memory:
    free(self);
    return result;
}

void bridge_region_close(struct ofp_domain *handle, struct ofp_region *region)
{
    struct bridge_domain *domain = bridge_domain_of(handle);
    struct ofp_region_device *ours = ofp_region_device(handle, region);
    struct bridge_region *self = (struct bridge_region *)(uintptr_t)ours->provider_data[0];

    if (!self)
        return;
    pthread_mutex_lock(&domain->lock);
    if (ofp_list_linked(&self->node))
        ofp_list_remove(&self->node);
    if (self->mr)
        self->mr->fid.ops->close(&self->mr->fid);
    pthread_mutex_unlock(&domain->lock);
    free(self);
    ours->provider_data[0] = 0;
}

/* ------------------------------------------------------------------------------------------------------- operations */

static int prepare_descriptor(struct ofp_endpoint *endpoint, const struct iovec *iov, struct ofp_region *region,
                              struct bridge_block *block, void **descriptor)
{
    struct bridge_domain *domain = bridge_domain_of(endpoint->domain);
    const struct bridge_region *known =
        region ? (const struct bridge_region *)(uintptr_t)ofp_region_device(endpoint->domain, region)->provider_data[0]
               : NULL;
    struct lf_mr *mr;
    int result;

    *descriptor = known && known->mr ? known->mr->descriptor : NULL;
    if (*descriptor || !iov->iov_len)
        return 0;
    result = register_memory(domain, iov->iov_base, iov->iov_len, LF_SEND | LF_RECV | LF_READ | LF_WRITE, 0, &mr);
    if (result)
        return result;
    OFP_CHECK(block->registered < OFP_SEGMENT_LIMIT + 2);
    block->regions[block->registered++] = mr;
    if (needs_binding(domain))
        result = bind_registration(mr, bridge_endpoint_of(endpoint));
    *descriptor = mr->descriptor;
    return result;
}

int bridge_descriptors_prepare(struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer,
                               struct bridge_block *block, void **descriptors)
{
    struct iovec compare = {(void *)(uintptr_t)transfer->compare, transfer->length};
    struct iovec result_memory = {transfer->result, transfer->length};
    int result = 0;

    for (uint32_t i = 0; !result && i < transfer->iov_count; i++)
        result = prepare_descriptor(endpoint, &transfer->iov[i], transfer->regions[i], block, &descriptors[i]);
    if (!result && ofp_operation_is(transfer->op->op, OFP_ATOMIC_KIND) && transfer->result)
        result =
            prepare_descriptor(endpoint, &result_memory, transfer->result_region, block, &descriptors[BRIDGE_RESULT]);
    if (!result && ofp_operation_is(transfer->op->op, OFP_COMPARES))
        result = prepare_descriptor(endpoint, &compare, transfer->compare_region, block, &descriptors[BRIDGE_COMPARE]);
    return result;
}
