/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_PROVIDER_ADDRESS_H
#define OFPI_PROVIDER_ADDRESS_H

#include "ofipy/ofp.h"
#include "ofipy/provider.h"

/* Check a peer's address that comes from outside: it is well formed, and endpoints of this domain can reach it. */
int ofpi_address_check(const struct ofp_domain *domain, const void *address, size_t length);

#endif
