/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounce buffers for receives of unknown size, where the transport matches messages. The domain's lock is held. */
#ifndef OFPI_BOUNCE_H
#define OFPI_BOUNCE_H

#include "object/endpoint.h"

/* Set the size of bounce buffers, after the provider's `open`, which may have chosen one. */
void ofpi_bounce_open(struct ofpi_endpoint *endpoint);
void ofpi_bounce_close(struct ofpi_endpoint *endpoint);
/* NULL: out of memory. */
void *ofpi_bounce_allocate(struct ofpi_endpoint *endpoint, uint64_t size);
/* The region of a bounce buffer. NULL: the transport caches no registrations. */
struct ofp_region *ofpi_region_of_bounce(void *memory, uint64_t size);
/* Free the bounce buffer of a receive with OFPI_HELD. */
void ofpi_bounce_free(struct ofpi_endpoint *endpoint, void *memory, uint64_t size);

#endif
