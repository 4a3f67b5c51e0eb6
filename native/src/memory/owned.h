/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions that nobody asked for: memory whose owner says when it leaves, so that registrations can be kept until then. */
#ifndef OFPI_OWNED_H
#define OFPI_OWNED_H

#include "object/domain.h"

/* NULL with *error: -EOPNOTSUPP where the provider keeps nothing, or nothing of that length. The lock is held. */
struct ofpi_region *ofpi_region_register_owned(struct ofpi_domain *domain, void *base, uint64_t length, int *error);
/* No operation is in it. The lock is held. */
void ofpi_region_deregister_owned(struct ofpi_domain *domain, struct ofpi_region *region);

#endif
