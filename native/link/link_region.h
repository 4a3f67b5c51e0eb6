/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A region of link is registered with each device. Cores know it by one key, whatever lane a peer uses; a device may
 * have made another key, which travels beside the first (link_keys.h). A device that cannot register a region is left
 * out. The functions are those of ofp_domain_ops.
 */
#ifndef LINK_REGION_H
#define LINK_REGION_H

#include "ofipy/provider.h"

int link_region_open(struct ofp_domain *outer, struct ofp_region *region);
void link_region_close(struct ofp_domain *outer, struct ofp_region *region);
int link_region_publish(struct ofp_domain *outer, struct ofp_region *region);
int link_region_withdraw(struct ofp_domain *outer, struct ofp_region *region);
void link_region_disowned(struct ofp_domain *outer, struct ofp_region *region);
int link_memory_allocate(struct ofp_domain *outer, struct ofp_region *region, char *text, size_t text_size);
/* As ofp_region_ways. */
int link_region_encode_keys(struct ofp_domain *outer, const struct ofp_region *region, uint8_t *lanes, size_t *length);
void link_memory_free(struct ofp_domain *outer, struct ofp_region *region);

#endif
