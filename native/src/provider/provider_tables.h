/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of providers that were built with the header of an earlier minor version: their shorter tables are completed
 * with NULL entries. Any thread.
 */
#ifndef OFPI_PROVIDER_TABLES_H
#define OFPI_PROVIDER_TABLES_H

#include "ofipy/provider.h"

/* The table as this core knows it, `size` bytes, of which `known` are the provider's. NULL: out of memory. */
const void *ofpi_table_convert(const void *table, uint32_t known, size_t size);
const struct ofp_provider *ofpi_provider_convert(const struct ofp_provider *provider);
/* NULL: the provider has none for this info. */
const struct ofp_endpoint_ops *ofpi_endpoint_ops_get(const struct ofp_provider *provider, const struct ofp_info *info);
/* As getinfo of the provider, whose infos may be shorter or longer. */
int ofpi_provider_infos_get(const struct ofp_provider *provider, struct ofp_info *infos, int max, char *text,
                            size_t text_size);

#endif
