/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_region.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "link/link_keys.h"
#include "link/link_objects.h"
#include "base/log.h"
#include "base/reason.h"
#include "object/domain.h"
#include "ofipy/ofp.h"
#include "progress/progress.h"
#include "base/check.h"

static const struct ofp_domain_ops *ops_of_device(const struct ofp_domain *device)
{
    return device->provider->domain_ops;
}

/* Write the reason for which a device refused, with its remedy, to `text` (OFP_TEXT_MAX bytes). */
static void describe_reason(int error, char *text)
{
    int code = ofp_explained();

    if (!code || ofp_reason(code, text, OFP_TEXT_MAX) != 1)
        snprintf(text, OFP_TEXT_MAX, "%s", ofp_strerror(error));
}

/* Without a registration, payload on this lane is copied, and RMA needs this process to make progress. */
static void warn_region_unknown(const struct ofp_domain *device, const struct ofp_region *region, int error, char *text)
{
    describe_reason(error, text);
    ofpi_log_write(
        OFP_LOG_WARNING, LINK_NAME,
        "region %u of %llu bytes is not known to %s: what goes that way costs a copy, and peers need this process to "
        "make progress (%s)",
        region->id, (unsigned long long)region->length, device->info->provider, text);
}

static void report_disowned(struct ofp_domain *device, struct ofp_region *region)
{
    if (device->keeps_above)
        ops_of_device(device)->region_disowned(device, region);
}

/*
 * Ask the device to free memory that it caches for later operations. The caller holds no lock; this acquires the
 * domain's.
 */
static void reclaim_device_memory(struct ofp_domain *device)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)device->engine;

    ofpi_lock_acquire(&domain->lock);
    report_disowned(device, NULL);
    ofpi_domain_leave(domain);
}

static int open_device_region(struct ofp_domain *device, struct ofp_region *region)
{
    const struct ofp_domain_ops *ops = ops_of_device(device);
    struct ofp_region_device *part = ofp_region_device(device, region);
    int result;

    part->key = region->device[0].key;
    result = ops->region_open ? ops->region_open(device, region) : 0;
    if (result == -ENOMEM && device->keeps_above) {
        reclaim_device_memory(device);
        result = ops->region_open(device, region);
    }
    if (result)
        *part = (struct ofp_region_device){0};
    return result;
}

int link_region_open(struct ofp_domain *outer, struct ofp_region *region)
{
    struct link_domain *own = link_domain_of(outer);
    char why[OFP_TEXT_MAX];
    int result = 0;

    for (uint32_t i = 0; i < own->set->count; i++) {
        int one = open_device_region(&own->devices[i], region);

        if (!one)
            region->known |= (uint8_t)(1u << i);
        else
            warn_region_unknown(&own->devices[i], region, result = one, why);
    }
    if (!region->known)
        ofpi_reason_report(why);
    return region->known ? 0 : result;
}

void link_region_close(struct ofp_domain *outer, struct ofp_region *region)
{
    struct link_domain *own = link_domain_of(outer);

    for (uint32_t i = 0; i < own->set->count; i++)
        if (region->known >> i & 1 && ops_of_device(&own->devices[i])->region_close)
            ops_of_device(&own->devices[i])->region_close(&own->devices[i], region);
    region->known = 0;
}

int link_region_publish(struct ofp_domain *outer, struct ofp_region *region)
{
    struct link_domain *own = link_domain_of(outer);
    char why[OFP_TEXT_MAX];
    int result = 0;

    for (uint32_t i = 0; i < own->set->count; i++) {
        struct ofp_domain *device = &own->devices[i];
        int one;

        if (!(region->known >> i & 1))
            continue;
        one = ops_of_device(device)->region_publish ? ops_of_device(device)->region_publish(device, region) : 0;
        if (!one)
            region->published |= (uint8_t)(1u << i);
        else
            warn_region_unknown(device, region, result = one, why);
    }
    OFPI_CHECK((region->published & ~region->known) == 0);
    return region->published ? 0 : result;
}

/*
 * Withdraw from each device until it no longer uses the region. The core repeats the call; devices that are done are
 * not called again.
 */
int link_region_withdraw(struct ofp_domain *outer, struct ofp_region *region)
{
    struct link_domain *own = link_domain_of(outer);

    for (uint32_t i = 0; i < own->set->count; i++) {
        struct ofp_domain *device = &own->devices[i];

        if (region->published >> i & 1 && (!ops_of_device(device)->region_withdraw ||
                                           ops_of_device(device)->region_withdraw(device, region) != -EAGAIN))
            region->published &= (uint8_t)~(1u << i);
    }
    return region->published ? -EAGAIN : 0;
}

void link_region_disowned(struct ofp_domain *outer, struct ofp_region *region)
{
    struct link_domain *own = link_domain_of(outer);

    for (uint32_t i = 0; i < own->set->count; i++)
        report_disowned(&own->devices[i], region);
}

int link_region_encode_keys(struct ofp_domain *outer, const struct ofp_region *region, uint8_t *lanes, size_t *length)
{
    const struct link_domain *own = link_domain_of(outer);
    size_t space = *length;

    *length = 0;
    for (uint32_t i = 0; i < own->set->count; i++) {
        const struct ofp_region_device *part = &region->device[LINK_DEVICE(i)];

        if (!(region->known >> i & 1) || (part->key == region->device[0].key && !part->remote_base))
            continue;
        if (space - *length < LINK_LANE_KEY_MAX)
            return -OFP_ETOOSMALL;
        *length += link_keys_write(lanes + *length, own->infos[i].provider,
                                   &(struct link_lane_key){part->key, part->remote_base});
    }
    return 0;
}

/* The first device that can allocate memory does; all others register it like any memory. */
static struct ofp_domain *find_allocating_device(struct link_domain *own)
{
    for (uint32_t i = 0; i < own->set->count; i++)
        if (ops_of_device(&own->devices[i])->memory_allocate)
            return &own->devices[i];
    return NULL;
}

int link_memory_allocate(struct ofp_domain *outer, struct ofp_region *region, char *text, size_t text_size)
{
    struct ofp_domain *device = find_allocating_device(link_domain_of(outer));
    void *memory;

    if (device)
        return ops_of_device(device)->memory_allocate(device, region, text, text_size);
    memory = mmap(NULL, region->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(text, text_size, "cannot map %llu bytes", (unsigned long long)region->length);
        return -ENOMEM;
    }
    region->base = memory;
    return 0;
}

void link_memory_free(struct ofp_domain *outer, struct ofp_region *region)
{
    struct ofp_domain *device = find_allocating_device(link_domain_of(outer));

    if (!device)
        munmap(region->base, region->length);
    else if (ops_of_device(device)->memory_free)
        ops_of_device(device)->memory_free(device, region);
}
