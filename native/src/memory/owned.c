/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/owned.h"

#include "ofipy/request.h"
#include "progress/progress.h"

#define OFPI_ACCESS_LOCAL (OFP_ACCESS_SEND | OFP_ACCESS_RECV | OFP_ACCESS_READ | OFP_ACCESS_WRITE)

uint64_t ofp_domain_keeps_above(const struct ofp_domain *domain)
{
    return domain->keeps_above ? domain->keeps_above : UINT64_MAX;
}

struct ofpi_region *ofpi_region_register_owned(struct ofpi_domain *domain, void *base, uint64_t length, int *error)
{
    struct ofpi_region *region;

    *error = -EOPNOTSUPP;
    if (length <= ofp_domain_keeps_above(&domain->base))
        return NULL;
    region = ofpi_regions_add(&domain->regions, OFPI_ACCESS_LOCAL, error);
    if (!region)
        return NULL;
    region->base.base = base;
    region->base.length = length;
    region->base.owned = true;
    return region;
}

void ofpi_region_deregister_owned(struct ofpi_domain *domain, struct ofpi_region *region)
{
    OFPI_CHECK(region->base.owned && !region->uses);
    domain->base.provider->domain_ops->region_disowned(&domain->base, &region->base);
    ofpi_regions_remove(&domain->regions, region);
}

int ofp_region_own(struct ofp_domain *handle, void *base, uint64_t length, uint32_t *id)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofpi_region *region;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    region = ofpi_region_register_owned(domain, base, length, &result);
    if (region)
        *id = region->base.id;
    ofpi_domain_leave(domain);
    return region ? 0 : result;
}
