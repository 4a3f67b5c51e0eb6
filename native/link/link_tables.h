/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_TABLES_H
#define LINK_TABLES_H

#include "ofipy/provider.h"

/* As ofp_provider_entry of those that are loaded. */
const struct ofp_provider *link_provider_get(const struct ofp_core *core);

#endif
