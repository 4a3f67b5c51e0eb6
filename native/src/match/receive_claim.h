/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are set aside for the receive of unknown size of a request, and the request's claims on them.
 *
 * The request claims the message and passes memory for it. The message stays set aside, even after the claim has
 * completed, until the request accepts it (ofpi_receive_accept) or returns it (ofpi_receive_unclaim). A returned
 * message can match another receive, so a message that no program received is not lost. If the payload of a claimed
 * message was still with its sender, the message borrows the claim's memory. When such a message is returned, it
 * continues to borrow the memory, and the claim ends with ECANCELED when the message is freed.
 *
 * The domain's lock is held.
 */
#ifndef OFPI_RECEIVE_CLAIM_H
#define OFPI_RECEIVE_CLAIM_H

#include "match/receive_matched.h"

/*
 * Receive a message that is set aside for a request into the receiver, which moves into the operation. A message that
 * is too long, or whose payload is lost, does not stay set aside; nor does one whose receiver has several segments.
 * -ENOMEM: nothing has changed. May call the provider.
 */
int ofpi_receive_claim(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                       struct ofpi_unexpected *unexpected, const struct ofpi_receiver *receiver);
/* The stream has ended that fills a claimed message, which is still set aside. */
void ofpi_receive_end_claim(struct ofpi_receive_context *context, struct ofpi_inflight *inflight, int error,
                            int provider_error);
/* Discard a message, waiting or set aside, that no stream fills. */
void ofpi_receive_discard(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected);
/* The request accepts its message, which is discarded. Does nothing if no message is set aside for the request. */
void ofpi_receive_accept(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context);
/* The request returns its message; results as of ofpi_receive_unclaim. */
int ofpi_receive_return_claimed(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                                uint64_t op_context, struct ofpi_unexpected **waiting);

#endif
