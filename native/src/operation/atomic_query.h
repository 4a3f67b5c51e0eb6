/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_ATOMIC_QUERY_H
#define OFPI_ATOMIC_QUERY_H

#include "ofipy/provider.h"

/* As ofp_atomic_query, of what a provider's info offers. */
int ofpi_provider_atomic_query(const struct ofp_provider *provider, const struct ofp_info *info,
                               uint32_t operation_code, uint32_t atomic_op, uint32_t datatype, uint64_t *count);

#endif
