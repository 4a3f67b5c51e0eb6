/* SPDX-License-Identifier: BSD-3-Clause */
/* Delivering the completions of operations to their owners. The domain's lock is held. */
#ifndef OFPI_COMPLETE_H
#define OFPI_COMPLETE_H

#include "object/endpoint.h"
#include "object/owner.h"

/*
 * Complete one operation: count it, and deliver its completion to its owner. `op_flags`: the operation's flags. They
 * say which kind of owner it has, whether it needs an entry on an endpoint with selective completion (OFP_COMPLETION),
 * and whether it was an inject or was copied (an entry only if it failed). Sets completion->endpoint.
 */
void ofpi_endpoint_complete(struct ofp_endpoint *endpoint, uint64_t op_flags, struct ofp_completion *completion);
/* As ofpi_endpoint_complete, for a receive. `message`: what it has received, which is counted; NULL: none. */
void ofpi_message_complete(struct ofp_endpoint *endpoint, uint64_t op_flags, const struct ofp_message *message,
                           struct ofp_completion *completion);
/* Call this from an owner's `finish`: it delivers the completion to the owner that the operation had before. */
void ofpi_owner_deliver(const struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                        struct ofp_completion *completion);

#endif
