/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_POST_H
#define OFPI_POST_H

#include "object/endpoint.h"

/* Check and start one operation. The lock is held. -EAGAIN: the transmit queue is full. */
int ofpi_endpoint_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
/* The same past the hooks. */
int ofpi_endpoint_start(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);

#endif
