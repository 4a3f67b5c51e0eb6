/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that a request holds: set aside for its receive of unknown size until it has memory for them.
 *
 * The request claims the message, with memory. It still holds the message then, also when it has received it, until it accepts
 * it (ofpi_receive_accept) or gives it back (ofpi_receive_unclaim): a message that nobody got goes to the next receive. The
 * memory of a claimed message whose payload was still with its sender is lent: given back, the message keeps it, and the
 * claim ends with ECANCELED when the message is gone.
 *
 * The domain's lock is held.
 */
#ifndef OFPI_RECEIVE_CLAIM_H
#define OFPI_RECEIVE_CLAIM_H

#include "match/receive_matched.h"

/*
 * Receive a message that a request holds into the receiver, which is used up; one that is too long, or whose payload is lost,
 * is held no more. -ENOMEM: nothing has changed. The provider may be called.
 */
int ofpi_receive_claim(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                       struct ofpi_unexpected *unexpected, const struct ofpi_receiver *receiver);
/* The stream has ended that fills a message which was claimed and is still held. */
void ofpi_receive_end_claim(struct ofpi_receive_context *context, struct ofpi_inflight *inflight, int error,
                            int provider_error);
/* Drop a message, waiting or set aside, whose payload nobody moves. */
void ofpi_receive_discard(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected);
/* The request has what it received, and holds the message no more. Harmless where it holds none. */
void ofpi_receive_accept(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context);
/* The request gives the message back: as ofpi_receive_unclaim. */
int ofpi_receive_return_claimed(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                                uint64_t op_context, struct ofpi_unexpected **waiting);

#endif
