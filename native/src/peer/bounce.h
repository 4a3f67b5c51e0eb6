/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers for receives whose message is looked at before it is received. The domain's lock is held. */
#ifndef OFPI_BOUNCE_H
#define OFPI_BOUNCE_H

#include "object/endpoint.h"

/* After the endpoint is open: how long a message a receive of unknown size takes; providers may have said. */
void ofpi_bounce_open(struct ofpi_endpoint *endpoint);
void ofpi_bounce_close(struct ofpi_endpoint *endpoint);
/* NULL: out of memory. */
void *ofpi_bounce_allocate(struct ofpi_endpoint *endpoint, uint64_t size);
/* What it is to the transport; NULL: memory as any other. */
struct ofp_region *ofpi_region_of_bounce(void *memory, uint64_t size);
/* Give back the buffer of a receive with OFPI_HELD. */
void ofpi_bounce_free(struct ofpi_endpoint *endpoint, void *memory, uint64_t size);

#endif
