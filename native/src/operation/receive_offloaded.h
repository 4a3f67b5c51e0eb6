/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives where the transport matches messages, and receives of unknown size (OFP_HOLD), which such a transport lacks.
 *
 * The core posts a receive with OFP_HOLD to the transport as an ordinary receive, in its order, into a bounce buffer.
 * The received message is stored in the endpoint's receive context, set aside for the operation, which claims or
 * returns it. A message that OFP_PEEK finds in the transport is received in the same way, into a buffer of its size. A
 * returned message waits in the context, ahead of all messages of the transport: receives search the context first, and
 * a matching receive that was already posted to the transport is cancelled there ("recalled") and posted again.
 *
 * The domain's lock is held.
 */
#ifndef OFPI_RECEIVE_OFFLOADED_H
#define OFPI_RECEIVE_OFFLOADED_H

#include "match/receive_matched.h"
#include "object/domain.h"

/* Post a checked receive; `peer` is NULL for any source. */
int ofpi_offloaded_post(struct ofpi_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/*
 * A receive with OFPI_HELD or OFP_PEEK has matched a message, or failed: `offloaded` becomes its result. True: the
 * operation continues as another receive, and nothing is to be reported.
 */
bool ofpi_offloaded_found(struct ofpi_pending *pending, const struct ofp_message *message,
                          struct ofp_offloaded *offloaded);
/* A message waits in the context again. Receives may complete. */
void ofpi_offloaded_returned(struct ofp_endpoint *endpoint, const struct ofpi_unexpected *kept);
/* The transport has cancelled a recalled receive: post it again, and search the core's messages first. */
void ofpi_offloaded_post_again(struct ofpi_pending *receive);
/*
 * A recalled receive has matched a message of the transport instead: recall the next receive that matches the returned
 * message.
 */
void ofpi_offloaded_match_again(struct ofpi_endpoint *endpoint);
/* A receive of the transport has matched a message, or ended without one. The row of struct ofp_services. */
void ofpi_offloaded_receive_complete(struct ofp_pending *pending, const struct ofp_message *message,
                                     const struct ofp_offloaded *offloaded);

#endif
