/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_REQUEST_FINISH_H
#define OFPI_REQUEST_FINISH_H

#include "completion/request_slots.h"

/* Finish a request whose operation has completed. The domain's lock is held. */
void ofpi_request_finish(struct ofp_request *request, const struct ofp_completion *completion);

#endif
