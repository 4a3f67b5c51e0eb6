/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions as the API offers them: register what the user has, allocate what the provider moves best. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "domain.h"

static uint64_t whole_pages(uint64_t length)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return length ? (length + page - 1) / page * page : page;
}

static int publish(struct ofpi_domain *domain, struct ofpi_region *region)
{
    const struct ofp_domain_ops *ops = &domain->base.provider->domain;

    return ops->region_open ? ops->region_open(&region->base) : 0;
}

int ofp_region_register(struct ofp_domain *handle, void *base, uint64_t length, uint32_t access, uint32_t *id,
                        uint64_t *key)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_region *region;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    region = ofpi_regions_add(&domain->regions, access);
    result = -ENOMEM;
    if (region) {
        region->base.domain = handle;
        region->base.base = base;
        region->base.length = length;
        result = publish(domain, region);
        if (result)
            ofpi_regions_remove(&domain->regions, region);
    }
    if (!result) {
        *id = region->base.id;
        *key = region->base.key;
    }
    ofpi_domain_leave(domain);
    return result;
}

static int allocate(struct ofpi_domain *domain, struct ofpi_region *region, char *text, size_t text_size)
{
    const struct ofp_domain_ops *ops = &domain->base.provider->domain;
    void *memory;

    if (ops->memory_allocate)
        return ops->memory_allocate(&region->base, text, text_size);
    memory = mmap(NULL, region->base.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(text, text_size, "cannot map %llu bytes", (unsigned long long)region->base.length);
        return -ENOMEM;
    }
    region->base.base = memory;
    return 0;
}

static void give_back(struct ofpi_domain *domain, struct ofpi_region *region)
{
    const struct ofp_domain_ops *ops = &domain->base.provider->domain;

    if (ops->memory_free)
        ops->memory_free(&region->base);
    else
        munmap(region->base.base, region->base.length);
}

int ofp_region_allocate(struct ofp_domain *handle, uint64_t length, uint32_t access, uint32_t *id, uint64_t *key,
                        void **base, char *text, size_t text_size)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_region *region;
    int result;

    text[0] = 0;
    if (length > UINT64_MAX / 2)
        return -ENOMEM;
    result = ofpi_domain_enter(domain);
    if (result)
        return result;
    region = ofpi_regions_add(&domain->regions, access);
    result = -ENOMEM;
    if (region) {
        region->base.domain = handle;
        region->base.length = whole_pages(length);
        region->base.allocated = true;
        result = allocate(domain, region, text, text_size);
        if (!result) {
            result = publish(domain, region);
            if (result)
                give_back(domain, region);
        }
        if (result)
            ofpi_regions_remove(&domain->regions, region);
    }
    if (!result) {
        *id = region->base.id;
        *key = region->base.key;
        *base = region->base.base;
    }
    ofpi_domain_leave(domain);
    return result;
}

int ofp_region_close(struct ofp_domain *handle, uint32_t id)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_region *region;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    region = ofpi_regions_find(&domain->regions, id);
    if (!region) {
        result = -OFP_ENOKEY;
    } else if (region->uses) {
        result = -EBUSY;
    } else {
        if (handle->provider->domain.region_close)
            handle->provider->domain.region_close(&region->base);
        if (region->base.allocated)
            give_back(domain, region);
        ofpi_regions_remove(&domain->regions, region);
    }
    ofpi_domain_leave(domain);
    return result;
}
