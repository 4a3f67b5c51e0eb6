/* SPDX-License-Identifier: BSD-3-Clause */
/* Optional device features. `ofipy info` prints them; no code depends on them yet. */
#ifndef VERBS_OPTIONAL_H
#define VERBS_OPTIONAL_H

#include "objects.h"

/* Whether the device can register memory of other devices by a descriptor (dma-buf), or why not. A static text. */
const char *verbs_dmabuf_probe(const struct verbs_port *port);
/* Describe which operations a connected queue pair supports in memory with on-demand paging. */
void verbs_on_demand_describe(const struct verbs_port *port, char *text, size_t text_size);
/* Describe with which other accesses the device's atomics are atomic. A static text. */
const char *verbs_atomicity_describe(const struct verbs_port *port);

#endif
