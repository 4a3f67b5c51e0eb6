/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives where the transport matches messages, and what such a transport lacks: holding a message whose size is not known.
 *
 * A receive with OFP_HOLD is to the transport an ordinary receive, in its place among the others, into a bounce buffer of
 * the core's. The message that comes is kept in the endpoint's receive context, set aside for the operation, which claims it
 * there or gives it back. What OFP_PEEK finds in the transport goes the same way, in a buffer of its size.
 * What was given back waits in the context, ahead of all that the transport has: receives look there first, and one that the
 * transport already has is taken back from it when it matches.
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
 * A receive with OFPI_HELD or OFP_PEEK has met a message, or failed: `offloaded` becomes what it ends with. True: it has gone
 * on as another receive, and nothing is to be reported.
 */
bool ofpi_offloaded_found(struct ofpi_pending *pending, const struct ofp_message *message,
                          struct ofp_offloaded *offloaded);
/* A message waits in the context again. Receives may complete. */
void ofpi_offloaded_returned(struct ofp_endpoint *endpoint, const struct ofpi_unexpected *kept);
/* A receive is back that the transport was asked to take back: the core's own messages come first this time. */
void ofpi_offloaded_post_again(struct ofpi_pending *receive);
/* One was asked back, and has met a message of the transport's instead: what waits is for the next that matches. */
void ofpi_offloaded_match_again(struct ofpi_endpoint *endpoint);
/* A receive that the transport has has met a message, or ended without one: the entry of the services. */
void ofpi_offloaded_receive_complete(struct ofp_pending *pending, const struct ofp_message *message,
                                     const struct ofp_offloaded *offloaded);

#endif
