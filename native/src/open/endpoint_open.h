/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_ENDPOINT_OPEN_H
#define OFPI_ENDPOINT_OPEN_H

#include "object/endpoint.h"

/* Create the core's receive context of an endpoint. Zero: the default limits. */
int ofpi_endpoint_open_context(struct ofpi_endpoint *endpoint, uint64_t unexpected_limit, uint64_t min_multi_recv);

#endif
