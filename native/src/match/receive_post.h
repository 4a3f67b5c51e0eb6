/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting and cancelling receives, and returning messages that were set aside. The domain's lock is held. */
#ifndef OFPI_RECEIVE_POST_H
#define OFPI_RECEIVE_POST_H

#include "ofipy/provider.h"

struct ofpi_receive_context;
struct ofpi_unexpected;

/*
 * OFP_RECV or OFP_TRECV of a checked transfer; op->peer is the source (OFP_PEER_ANY: any). The transfer's memory is copied
 * as needed, its regions are held (ofpi_region_retain) until the completion. Flags:
 *   none                  match an unexpected message or stay posted;
 *   MULTI_RECV            the same for message after message, one segment; receive_many.h;
 *   PEEK                  complete at once: length, tag, data, source of the first match, or error ENOMSG;
 *   PEEK | CLAIM          the same, and the message is set aside under op->context;
 *   PEEK | DISCARD        the same, and the message is dropped;
 *   HOLD | CLAIM          as PEEK | CLAIM, but stays posted (in its place in the order) until a message matches;
 *   CLAIM                 receive the message set aside under op->context, -ENOENT when there is none; of a request it stays
 *                         set aside: receive_claim.h;
 *   CLAIM | DISCARD       drop it (completes).
 * A request-tier operation is told by OFPI_REQUEST in op->flags. Returns 0, -ENOMEM, -ENOENT, -EINVAL.
 */
int ofpi_receive_post(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                      const struct ofp_transfer *transfer);
/*
 * Cancel the newest posted receive with this context value (and the same owner bits): it completes with ECANCELED.
 * Constant time by a hash of contexts is not needed; newest first is. -ENOENT: none.
 */
int ofpi_receive_cancel(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                        uint64_t op_flags);
/*
 * Put a message set aside under this context back: to the oldest posted receive that matches, else in its old place, where
 * *waiting becomes it, unless `waiting` is NULL. 1: the request's claim has lent its memory, and ends with ECANCELED when the
 * message is gone, which may be within this call; 0: nothing more is told of the operation. -ENOENT, -ENOMEM: nothing has
 * changed.
 */
int ofpi_receive_unclaim(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                         struct ofpi_unexpected **waiting);
/* Put back a message that is set aside, whose claim is no more; as ofpi_receive_unclaim. */
int ofpi_receive_return_message(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                                struct ofpi_unexpected **waiting);

#endif
