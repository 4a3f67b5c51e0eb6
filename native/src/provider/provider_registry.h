/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_PROVIDER_REGISTRY_H
#define OFPI_PROVIDER_REGISTRY_H

#include "ofipy/ofp.h"
#include "ofipy/provider.h"

extern const struct ofp_core ofpi_core;
/* Check a table and enter it; what ofp_provider_load does after loading the object, and C programs that link one. */
int ofpi_provider_register(ofp_provider_entry_fn *entry, struct ofp_provider **provider, char *text, size_t text_size);
/* One that was registered, by its name, which need not end with a zero; NULL: none. */
const struct ofp_provider *ofpi_provider_find(const char *name, size_t length);

#endif
