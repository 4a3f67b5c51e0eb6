/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushing batched operations: a provider batches them until it is flushed. The domain's lock is held. */
#ifndef OFPI_FLUSH_H
#define OFPI_FLUSH_H

#include "object/endpoint.h"

/* Flush one endpoint at once. */
void ofpi_endpoint_flush(struct ofpi_endpoint *endpoint);
/* Flush the endpoint before the domain's lock is released. */
void ofpi_endpoint_flush_later(struct ofp_endpoint *endpoint);
/* Flush all endpoints of ofpi_endpoint_flush_later. */
void ofpi_domain_flush(struct ofpi_domain *domain);

#endif
