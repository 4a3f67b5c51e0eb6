/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_TABLES_H
#define LINK_TABLES_H

#include "ofipy/provider.h"

/* As the function ofp_provider_entry of a loadable provider. */
const struct ofp_provider *link_provider_get(const struct ofp_core *core);

#endif
