/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose payload follows their header in a stream. The domain's lock is held. */
#ifndef OFPI_RECEIVE_STREAM_H
#define OFPI_RECEIVE_STREAM_H

#include "match/lent.h"

/* See struct ofp_services. */
int ofpi_message_begun(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                       const struct ofp_message *message, enum ofp_room bound, struct ofp_receive **receive);
/* The stream that fills the unexpected message of a receive in flight has ended. The caller frees `inflight`. */
void ofpi_stream_complete(struct ofpi_receive_context *context, struct ofpi_inflight *inflight, int error,
                          int provider_error);

#endif
