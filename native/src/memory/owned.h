/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owned regions: memory that the program announces (ofp_region_own) without registering it. The provider may cache its
 * own registrations of the memory until the region is closed.
 */
#ifndef OFPI_OWNED_H
#define OFPI_OWNED_H

#include "object/domain.h"

/*
 * NULL with *error; -EOPNOTSUPP: the provider does not cache registrations of this length. The domain's lock is held.
 */
struct ofpi_region *ofpi_region_register_owned(struct ofpi_domain *domain, void *base, uint64_t length, int *error);
/* No operation in flight uses the region. The domain's lock is held. */
void ofpi_region_deregister_owned(struct ofpi_domain *domain, struct ofpi_region *region);

#endif
