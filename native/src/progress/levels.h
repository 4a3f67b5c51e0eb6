/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels in the statistics page: how long the queues of endpoints are now. The domain's lock is held. */
#ifndef OFPI_LEVELS_H
#define OFPI_LEVELS_H

#include "object/endpoint.h"

/* Write those of one endpoint, and the share of what the domain has counted since the last share. */
void ofpi_levels_write(struct ofpi_endpoint *endpoint);
/* A round of progress has asked the kernel, or a thread is about to sleep: write those of the domain's endpoints. */
void ofpi_domain_levels_write(struct ofpi_domain *domain);

#endif
