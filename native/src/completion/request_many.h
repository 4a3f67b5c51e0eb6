/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_REQUEST_MANY_H
#define OFPI_REQUEST_MANY_H

#include "completion/request_slots.h"

void ofpi_request_many_start(struct ofp_request *request);
/* Whether the last completion was stored, so that the operation has ended. */
bool ofpi_request_many_is_over(const struct ofp_request *request);
/*
 * Handle a completion of the operation. True: the caller stores it in the request, which finishes, and notifies
 * waiters. False: the completion was appended to `later`, or discarded.
 */
bool ofpi_request_many_complete(struct ofp_request *request, const struct ofp_completion *completion);
/* The first completion was read: load the next one, or set the request running, or free it after the last one. */
void ofpi_request_many_advance(struct ofp_request *request);
/* The program releases the request: discard all its completions, and free it after the last one. */
void ofpi_request_many_release(struct ofp_request *request);
/* The use of the slot ends: free the completions that were not read. */
void ofpi_request_many_clear(struct ofp_request *request);

#endif
