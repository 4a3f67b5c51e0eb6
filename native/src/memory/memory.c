/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions of the public interface: registering the user's memory, and allocating memory that suits the provider.
 *
 * A region is created in three steps: allocate the memory, unless it is the user's; register it with the device, with
 * the domain's lock released; publish it to peers, with the lock held. Closing takes the reverse steps in the reverse
 * order.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "completion/counter.h"
#include "memory/owned.h"
#include "memory/remote.h"
#include "object/domain.h"
#include "object/region.h"
#include "ofipy/ofp.h"
#include "progress/progress.h"

/* How long closing waits for region visits to end, ns. The death of a peer is detected within a second. */
#define WITHDRAW_PATIENCE UINT64_C(2000000000)

static const struct ofp_domain_ops *ops_of_domain(const struct ofpi_domain *domain)
{
    return domain->base.provider->domain_ops;
}

static uint64_t compute_whole_pages(uint64_t length)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return length ? (length + page - 1) / page * page : page;
}

static int allocate_region_memory(struct ofpi_domain *domain, struct ofpi_region *region, char *text, size_t text_size)
{
    void *memory;

    if (ops_of_domain(domain)->memory_allocate)
        return ops_of_domain(domain)->memory_allocate(&domain->base, &region->base, text, text_size);
    memory = mmap(NULL, region->base.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(text, text_size, "cannot map %llu bytes", (unsigned long long)region->base.length);
        return -ENOMEM;
    }
    region->base.base = memory;
    return 0;
}

static void free_region_memory(struct ofpi_domain *domain, struct ofpi_region *region)
{
    if (!region->base.allocated)
        return;
    if (ops_of_domain(domain)->memory_free)
        ops_of_domain(domain)->memory_free(&domain->base, &region->base);
    else
        munmap(region->base.base, region->base.length);
}

static int publish_region(struct ofpi_domain *domain, struct ofpi_region *region)
{
    int result;

    if (!(region->base.access & OFPI_ACCESS_REMOTE))
        return 0;
    result = ofpi_regions_enter_key(&domain->regions, region);
    if (!result && ops_of_domain(domain)->region_publish) {
        result = ops_of_domain(domain)->region_publish(&domain->base, &region->base);
        if (result)
            ofpi_regions_remove_key(&domain->regions, region);
    }
    return result;
}

/* The lock is held, and released while the device registers the region. No other thread knows the region yet. */
static int open_region_at_device(struct ofpi_domain *domain, struct ofpi_region *region)
{
    int result;

    if (!ops_of_domain(domain)->region_open)
        return 0;
    ofpi_domain_leave(domain);
    result = ops_of_domain(domain)->region_open(&domain->base, &region->base);
    ofpi_lock_acquire(&domain->lock);
    return result;
}

static int register_region(struct ofpi_domain *domain, struct ofpi_region *region)
{
    int result = open_region_at_device(domain, region);

    /* Out of memory: release the registrations that are cached for later operations, and try again. */
    if (result == -ENOMEM && domain->base.keeps_above) {
        ops_of_domain(domain)->region_disowned(&domain->base, NULL);
        result = open_region_at_device(domain, region);
    }
    if (result)
        return result;
    result = publish_region(domain, region);
    if (result && ops_of_domain(domain)->region_close)
        ops_of_domain(domain)->region_close(&domain->base, &region->base);
    return result;
}

static int create_region(struct ofpi_domain *domain, const struct ofp_region_attr *attr,
                         struct ofp_region_handle *handle, char *text, size_t text_size)
{
    struct ofpi_region *region;
    int result = 0;

    if ((attr->remote_read && !ofpi_counter_is_usable(domain, attr->remote_read)) ||
        (attr->remote_write && !ofpi_counter_is_usable(domain, attr->remote_write)))
        return -EINVAL;
    if (attr->access & OFP_ACCESS_DEVICE_ATOMIC && !(domain->info.caps & OFP_CAP_DEVICE_ATOMIC))
        return -EOPNOTSUPP;
    region = ofpi_regions_add(&domain->regions, attr->access, &result);
    if (!region)
        return result;
    region->base.base = attr->base;
    region->base.length = attr->base ? attr->length : compute_whole_pages(attr->length);
    region->base.allocated = !attr->base;
    region->remote_read = attr->remote_read;
    region->remote_write = attr->remote_write;
    region->base.remote_events = attr->remote_read || attr->remote_write;
    region->base.key_fixed = attr->has_key && attr->access & OFPI_ACCESS_REMOTE;
    if (region->base.key_fixed)
        region->base.device[0].key = attr->key;
    if (region->base.allocated)
        result = allocate_region_memory(domain, region, text, text_size);
    if (!result) {
        result = register_region(domain, region);
        if (result)
            free_region_memory(domain, region);
    }
    if (result) {
        ofpi_regions_remove(&domain->regions, region);
        return result;
    }
    *handle = (struct ofp_region_handle){.base = region->base.base,
                                         .length = region->base.length,
                                         .key = region->base.device[0].key,
                                         .remote_base = region->base.device[0].remote_base,
                                         .id = region->base.id,
                                         .access = region->base.access,
                                         .has_ways = region->base.known != 0};
    return 0;
}

int ofp_region_register(struct ofp_domain *handle, const struct ofp_region_attr *attr, struct ofp_region_handle *region)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    int result;

    if (!attr->base)
        return -EINVAL;
    result = ofpi_domain_enter(domain);
    if (result)
        return result;
    result = create_region(domain, attr, region, NULL, 0);
    ofpi_domain_leave(domain);
    return result;
}

int ofp_region_allocate(struct ofp_domain *handle, const struct ofp_region_attr *attr, struct ofp_region_handle *region,
                        char *text, size_t text_size)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    int result;

    text[0] = 0;
    if (attr->base)
        return -EINVAL;
    /* Rounding up to whole pages must not wrap around. */
    if (attr->length > UINT64_MAX / 2)
        return -ENOMEM;
    result = ofpi_domain_enter(domain);
    if (result)
        return result;
    result = create_region(domain, attr, region, text, text_size);
    ofpi_domain_leave(domain);
    return result;
}

/* Withdraw the region from peers. Waits for region visits to end, but not for ever: a visiting peer may be dead. */
static void withdraw_region(struct ofpi_domain *domain, struct ofpi_region *region)
{
    uint64_t deadline = ofpi_clock_read() + WITHDRAW_PATIENCE;

    /* Remove the key first, so that no visit begins while others end. */
    ofpi_regions_remove_key(&domain->regions, region);
    ofpi_remote_access_withdraw(region);
    if (!(region->base.access & OFPI_ACCESS_REMOTE) || !ops_of_domain(domain)->region_withdraw)
        return;
    while (ops_of_domain(domain)->region_withdraw(&domain->base, &region->base) == -EAGAIN &&
           ofpi_clock_read() < deadline) {
        ofpi_domain_progress(domain, true);
        ofpi_lock_release(&domain->lock);
        sched_yield();
        ofpi_lock_acquire(&domain->lock);
    }
}

int ofp_region_close(struct ofp_domain *handle, uint32_t id)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_region *region;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    region = ofpi_regions_find(&domain->regions, id);
    if (!region || !region->open) {
        result = -OFP_ENOREGION;
    } else if (region->uses) {
        result = -EBUSY;
    } else if (region->base.owned) {
        ofpi_region_deregister_owned(domain, region);
    } else {
        /* Set before the lock is released, so that no other thread uses the region, or closes it again. */
        region->open = false;
        withdraw_region(domain, region);
        if (ops_of_domain(domain)->region_close) {
            ofpi_domain_leave(domain);
            ops_of_domain(domain)->region_close(&domain->base, &region->base);
            ofpi_lock_acquire(&domain->lock);
        }
        free_region_memory(domain, region);
        ofpi_regions_remove(&domain->regions, region);
    }
    ofpi_domain_leave(domain);
    return result;
}
