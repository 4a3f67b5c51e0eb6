/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_REQUEST_END_H
#define OFPI_REQUEST_END_H

#include "completion/request_slots.h"

/* A released request has finished: return its message, if any, and free the slot. */
void ofpi_request_end_released(struct ofp_request *request);

#endif
