/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting and cancelling receives, and returning messages that were set aside. The domain's lock is held. */
#ifndef OFPI_RECEIVE_POST_H
#define OFPI_RECEIVE_POST_H

#include "ofipy/provider.h"

struct ofpi_receive_context;
struct ofpi_unexpected;

/*
 * Post OFP_RECV or OFP_TRECV with a checked transfer; op->peer is the source (OFP_PEER_ANY: any). The descriptions of
 * the memory are copied. The regions are retained (ofpi_region_retain) until the completion. Flags:
 *   none                  match an unexpected message, or stay posted;
 *   MULTI_RECV            the same for many messages, with one segment; receive_many.h;
 *   PEEK                  complete at once: length, tag, data, source of the first match, or error ENOMSG;
 *   PEEK | CLAIM          the same, and the message is set aside under op->context;
 *   PEEK | DISCARD        the same, and the message is discarded;
 *   HOLD | CLAIM          as PEEK | CLAIM, but stays posted (in its place in the order) until a message matches;
 *   CLAIM                 receive the message set aside under op->context, -ENOENT if there is none; the message of a
 *                         request stays set aside: receive_claim.h;
 *   CLAIM | DISCARD       discard that message, and complete.
 * op->flags contains OFPI_REQUEST if the operation belongs to a request. Returns 0, -ENOMEM, -ENOENT, -EINVAL.
 */
int ofpi_receive_post(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                      const struct ofp_transfer *transfer);
/*
 * Cancel the newest posted receive with this context value (and the same owner bits): it completes with ECANCELED.
 * -ENOENT: there is none. The search is linear, from the newest receive.
 */
int ofpi_receive_cancel(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                        uint64_t op_flags);
/*
 * Return the message that is set aside under this context: deliver it to the oldest posted receive that matches, else
 * insert it in its old place among the unexpected messages. In the second case *waiting is set to it, unless `waiting`
 * is NULL. 1: the message borrows the memory of the request's claim, which ends with ECANCELED when the message is
 * freed, maybe within this call. 0: the operation has no further completion. -ENOENT, -ENOMEM: nothing has changed.
 */
int ofpi_receive_unclaim(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                         struct ofpi_unexpected **waiting);
/* Return a set-aside message that has no claim in flight; `waiting` and errors as for ofpi_receive_unclaim. */
int ofpi_receive_return_message(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected,
                                struct ofpi_unexpected **waiting);

#endif
