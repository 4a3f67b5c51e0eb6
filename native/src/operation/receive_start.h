/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_RECEIVE_START_H
#define OFPI_RECEIVE_START_H

#include "object/endpoint.h"

/* Start a receive of a resolved transfer. */
int ofpi_receive_start(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer);

#endif
