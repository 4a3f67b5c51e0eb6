/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_PROVIDER_ADDRESS_H
#define OFPI_PROVIDER_ADDRESS_H

#include "ofipy/ofp.h"
#include "ofipy/provider.h"

/* Of a peer of this domain, from outside: well-formed, and not out of reach. */
int ofpi_address_check(const struct ofp_domain *domain, const void *address, size_t length);

#endif
