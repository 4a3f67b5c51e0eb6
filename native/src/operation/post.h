/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_POST_H
#define OFPI_POST_H

#include "object/endpoint.h"

/* Check and start one operation. The lock is held. -EAGAIN: the transmit queue is full. */
int ofpi_endpoint_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
/* Post due work. A lingering endpoint that refuses new operations accepts due work until it closes. */
int ofpi_endpoint_post_due(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
/* As ofpi_endpoint_post, without calling hooks. */
int ofpi_endpoint_start(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);

#endif
