/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_REQUEST_MANY_H
#define OFPI_REQUEST_MANY_H

#include "completion/request_slots.h"

void ofpi_request_many_start(struct ofp_request *request);
/* Its last completion has come, so that the operation is no more. */
bool ofpi_request_many_is_over(const struct ofp_request *request);
/* A completion has come. True: it is the first to be taken, and somebody may want to hear of it. */
bool ofpi_request_many_complete(struct ofp_request *request, const struct ofp_completion *completion);
/* The first completion was taken: the next one is there, or it runs, or it was given back. */
void ofpi_request_many_advance(struct ofp_request *request);
/* Nobody will take the rest. */
void ofpi_request_many_release(struct ofp_request *request);
void ofpi_request_many_clear(struct ofp_request *request);

#endif
