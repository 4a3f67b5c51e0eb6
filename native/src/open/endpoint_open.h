/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_ENDPOINT_OPEN_H
#define OFPI_ENDPOINT_OPEN_H

#include "object/endpoint.h"

/* Open a receive context of the core's own. Zero: the defaults. */
int ofpi_endpoint_open_context(struct ofpi_endpoint *endpoint, uint64_t unexpected_limit, uint64_t min_multi_recv);

#endif
