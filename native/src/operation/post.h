/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_POST_H
#define OFPI_POST_H

#include "object/endpoint.h"

/* Check and start one operation. The lock is held. -EAGAIN: the transmit queue is full. */
int ofpi_endpoint_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
/* Deferred work that is due, which an endpoint that refuses new operations still takes until it closes. */
int ofpi_endpoint_post_due(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
/* As ofpi_endpoint_post, past the hooks. */
int ofpi_endpoint_start(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);

#endif
