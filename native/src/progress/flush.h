/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushing operations that providers batch until more is posted, or until the call ends. The domain's lock is held. */
#ifndef OFPI_FLUSH_H
#define OFPI_FLUSH_H

#include "object/endpoint.h"

/* Now. */
void ofpi_endpoint_flush(struct ofpi_endpoint *endpoint);
/* Flush before the domain's lock is released. */
void ofpi_endpoint_flush_later(struct ofp_endpoint *endpoint);
/* All that is to be flushed later. */
void ofpi_domain_flush(struct ofpi_domain *domain);

#endif
