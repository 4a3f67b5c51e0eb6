/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/registration.h"

#include <errno.h>

#include "memory/memory.h"

/* Indices of struct ofpi_memory.private. */
enum { LOCAL_KEY, REGISTERED };

#define WRITES_HERE (OFP_ACCESS_RECV | OFP_ACCESS_READ)

static int convert_transfer_access(const struct verbs_domain *domain, uint32_t access)
{
    bool iwarp = domain->port->context->device->transport_type == IBV_TRANSPORT_IWARP;
    int result = access & WRITES_HERE ? IBV_ACCESS_LOCAL_WRITE : 0;

    /* iWARP needs remote write access for memory that an RDMA read fills. */
    if (iwarp && access & WRITES_HERE)
        result |= IBV_ACCESS_REMOTE_WRITE;
    if (access & OFP_ACCESS_REMOTE_READ)
        result |= IBV_ACCESS_REMOTE_READ;
    return result;
}

/* NULL: the memory has no memory region that allows the access. */
static struct ibv_mr *find_memory_region(const struct verbs_domain *domain, struct ofp_region *region, uint32_t access)
{
    struct ibv_mr *mr = verbs_mr_of_region(domain, region);

    return mr && access & OFP_ACCESS_REMOTE_READ && !verbs_region_is_readable(domain, region) ? NULL : mr;
}

/*
 * With a key, memory that is opened for one receiver is closed when the message has arrived, so it is not stored in the
 * cache.
 */
static struct ofp_region *choose_owner(const struct verbs_domain *domain, struct ofp_region *region, uint32_t access)
{
    return domain->has_key && access & OFP_ACCESS_REMOTE_READ ? NULL : region;
}

int verbs_transfer_register(struct ofpi_path *path, struct ofpi_memory *memory, uint32_t access)
{
    struct verbs_domain *domain = verbs_rdm_of(path->channel)->domain;
    struct verbs_registration *registration = NULL;
    struct ibv_mr *mr = find_memory_region(domain, memory->region, access);

    if (!mr) {
        registration = verbs_memory_acquire(domain, choose_owner(domain, memory->region, access), memory->base,
                                            memory->length, convert_transfer_access(domain, access));
        if (!registration)
            return -errno;
        mr = registration->mr;
    }
    memory->private[REGISTERED] = (uintptr_t)registration;
    memory->private[LOCAL_KEY] = mr->lkey;
    memory->address = (uintptr_t)memory->base;
    memory->key = mr->rkey;
    return 0;
}

void verbs_transfer_deregister(struct ofpi_path *path, struct ofpi_memory *memory)
{
    struct verbs_registration *registration = (struct verbs_registration *)(uintptr_t)memory->private[REGISTERED];

    if (registration)
        verbs_cache_release(&verbs_rdm_of(path->channel)->domain->cache, registration);
}

bool verbs_path_can_use_key(const struct ofpi_path *path, uint64_t key)
{
    (void)path;
    return verbs_key_is_of_device(key);
}
