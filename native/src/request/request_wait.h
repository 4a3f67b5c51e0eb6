/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_REQUEST_WAIT_H
#define OFPI_REQUEST_WAIT_H

#include "completion/request_slots.h"

/* Wait until this run of it is over; as ofpi_domain_wait. */
int ofpi_request_await(struct ofp_request *request, int64_t timeout);
/* Copy the completion of a finished request, and free its slot unless the request continues. */
void ofpi_request_read_completion(struct ofp_request *request, struct ofp_completion *completion);

#endif
