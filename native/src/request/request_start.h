/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_REQUEST_START_H
#define OFPI_REQUEST_START_H

#include "object/endpoint.h"

/* Start an operation. With a full transmit queue wait for space first; `how` and `timeout` as ofp_request_start. */
int ofpi_request_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op, uint32_t how, int64_t timeout);

#endif
