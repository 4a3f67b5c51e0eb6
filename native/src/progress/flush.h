/* SPDX-License-Identifier: BSD-3-Clause */
/* What providers hold back until more is posted, or until the call ends. The domain's lock is held. */
#ifndef OFPI_FLUSH_H
#define OFPI_FLUSH_H

#include "object/endpoint.h"

/* Now. */
void ofpi_endpoint_flush(struct ofpi_endpoint *endpoint);
/* Before the domain is let go. */
void ofpi_endpoint_flush_later(struct ofp_endpoint *endpoint);
/* All that is to be flushed later. */
void ofpi_domain_flush(struct ofpi_domain *domain);

#endif
