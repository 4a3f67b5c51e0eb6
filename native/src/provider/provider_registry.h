/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_PROVIDER_REGISTRY_H
#define OFPI_PROVIDER_REGISTRY_H

#include "ofipy/ofp.h"
#include "ofipy/provider.h"

extern const struct ofp_core ofpi_core;
/* Check and register a provider's table: for ofp_provider_load, and for C programs that link a provider. */
int ofpi_provider_register(ofp_provider_entry_fn *entry, struct ofp_provider **provider, char *text, size_t text_size);
/* A registered provider by its name, which need not be zero-terminated; NULL: none. */
const struct ofp_provider *ofpi_provider_find(const char *name, size_t length);

/* Whether endpoints of the info encrypt as OFIPY_ENCRYPTION says. If not, they must not open. */
bool ofpi_info_can_encrypt(const struct ofp_info *info);

#endif
