/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "device/limits.h"

#define WRITES_HERE (OFP_ACCESS_RECV | OFP_ACCESS_READ | OFP_ACCESS_REMOTE_WRITE | OFP_ACCESS_DEVICE_ATOMIC)
#define FROM_AFAR (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE | OFP_ACCESS_DEVICE_ATOMIC)

/* Describes what to do, and returns the provider error for it. */
static int describe_registration_error(size_t length, int error)
{
    char memlock[OFP_TEXT_MAX], text[2 * OFP_TEXT_MAX];

    if (error == ENOMEM || error == EAGAIN)
        verbs_memlock_describe(memlock, sizeof(memlock));
    else
        snprintf(memlock, sizeof(memlock), "%s", strerror(error));
    snprintf(text, sizeof(text), "%zu bytes cannot be registered with the device; %s", length, memlock);
    return verbs_core->explain(text);
}

struct verbs_registration *verbs_memory_acquire(struct verbs_domain *domain, struct ofp_region *region, void *base,
                                                uint64_t length, int access)
{
    struct verbs_registration *registration = verbs_cache_acquire(&domain->cache, region, base, length, access);
    int error = errno;

    if (!registration)
        domain->registration_error = describe_registration_error(length, error);
    errno = error;
    return registration;
}

/* --------------------------------------------------------------------------------------------------------- regions */

struct ibv_mr *verbs_mr_of_region(const struct verbs_domain *domain, struct ofp_region *region)
{
    if (!region || region->owned)
        return NULL;
    return (struct ibv_mr *)(uintptr_t)ofp_region_device(domain->base, region)->provider_data[0];
}

static bool is_rdm(const struct ofp_domain *base) { return base->info->ep_types & OFP_EP_RDM; }

/*
 * Memory that is only sent from may be read-only. Receivers read long messages of RDM endpoints remotely. With a key, a
 * message is opened for its receiver only while it is in flight, by a registration of its own.
 */
static int convert_region_access(const struct ofp_domain *base, const struct ofp_region *region)
{
    bool is_sent_remotely = is_rdm(base) && !verbs_domain_of(base)->has_key;
    uint32_t reads = OFP_ACCESS_REMOTE_READ | (is_sent_remotely ? OFP_ACCESS_SEND : 0);
    int access = region->access & WRITES_HERE ? IBV_ACCESS_LOCAL_WRITE : 0;

    if (region->access & reads)
        access |= IBV_ACCESS_REMOTE_READ;
    if (region->access & OFP_ACCESS_REMOTE_WRITE)
        access |= IBV_ACCESS_REMOTE_WRITE;
    if (region->access & OFP_ACCESS_DEVICE_ATOMIC)
        access |= IBV_ACCESS_REMOTE_ATOMIC;
    return access;
}

bool verbs_region_is_readable(const struct verbs_domain *domain, const struct ofp_region *region)
{
    return convert_region_access(domain->base, region) & IBV_ACCESS_REMOTE_READ;
}

int verbs_region_open(struct ofp_domain *base, struct ofp_region *region)
{
    struct ofp_region_device *ours = ofp_region_device(base, region);
    struct ibv_mr *mr;

    if (is_rdm(base) && region->key_fixed && verbs_key_is_of_device(ours->key))
        return -EINVAL;
    /* A region without bytes needs no registration. */
    if (!region->length)
        return 0;
    mr = verbs_calls.reg_mr(verbs_domain_of(base)->pd, region->base, region->length,
                            convert_region_access(base, region));
    if (!mr) {
        int error = errno == EAGAIN ? ENOMEM : errno;

        describe_registration_error(region->length, error);
        return -error;
    }
    ours->provider_data[0] = (uintptr_t)mr;
    /* RDM endpoints serve a region with a user's key by messages. */
    if (region->access & FROM_AFAR && !(is_rdm(base) && region->key_fixed)) {
        ours->key = is_rdm(base) ? VERBS_KEY_MARK | mr->rkey : mr->rkey;
        ours->remote_base = (uintptr_t)region->base;
    }
    return 0;
}

void verbs_region_close(struct ofp_domain *base, struct ofp_region *region)
{
    struct ibv_mr *mr = verbs_mr_of_region(verbs_domain_of(base), region);

    if (mr)
        verbs_calls.dereg_mr(mr);
    ofp_region_device(base, region)->provider_data[0] = 0;
}

void verbs_region_disowned(struct ofp_domain *base, struct ofp_region *region)
{
    if (region)
        verbs_cache_remove_region(&verbs_domain_of(base)->cache, region);
    else
        verbs_cache_clear(&verbs_domain_of(base)->cache);
}

/* ------------------------------------------------------------------------------------------------------- operations */

bool verbs_memory_is_registered(const struct verbs_domain *domain, const struct ofp_transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->iov_count; i++)
        if (transfer->iov[i].iov_len && !verbs_mr_of_region(domain, transfer->regions[i]))
            return false;
    return true;
}

int verbs_memory_acquire_keys(struct verbs_domain *domain, const struct ofp_transfer *transfer, bool writes,
                              uint32_t *keys, struct verbs_registration **registered, uint32_t *registered_count)
{
    for (uint32_t i = 0; i < transfer->iov_count; i++) {
        const struct iovec *piece = &transfer->iov[i];
        struct ibv_mr *mr = verbs_mr_of_region(domain, transfer->regions[i]);
        struct verbs_registration *registration;

        keys[i] = mr ? mr->lkey : 0;
        if (mr || !piece->iov_len)
            continue;
        registration = verbs_memory_acquire(domain, transfer->regions[i], piece->iov_base, piece->iov_len,
                                            writes ? IBV_ACCESS_LOCAL_WRITE : 0);
        if (!registration) {
            int error = errno;

            verbs_memory_release_keys(domain, registered, registered_count);
            return -error;
        }
        keys[i] = registration->mr->lkey;
        registered[(*registered_count)++] = registration;
    }
    return 0;
}

void verbs_memory_release_keys(struct verbs_domain *domain, struct verbs_registration **registered, uint32_t *count)
{
    while (*count)
        verbs_cache_release(&domain->cache, registered[--*count]);
}
