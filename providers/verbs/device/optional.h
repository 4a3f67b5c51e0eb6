/* SPDX-License-Identifier: BSD-3-Clause */
/* What some devices can do besides, asked for people: nothing here uses it yet. */
#ifndef VERBS_OPTIONAL_H
#define VERBS_OPTIONAL_H

#include "objects.h"

/* Whether, or why not, memory of other devices can be registered by a descriptor (dma-buf); static. */
const char *verbs_dmabuf_probe(const struct verbs_port *port);
/* What a connected queue pair may do in memory that is registered without being locked (on-demand paging). */
void verbs_on_demand_describe(const struct verbs_port *port, char *text, size_t text_size);
/* Against whom the device's atomics are one step; static. */
const char *verbs_atomicity_describe(const struct verbs_port *port);

#endif
