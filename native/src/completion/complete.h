/* SPDX-License-Identifier: BSD-3-Clause */
/* Where finished operations go: to their owner. The domain's lock is held. */
#ifndef OFPI_COMPLETE_H
#define OFPI_COMPLETE_H

#include "object/endpoint.h"
#include "object/owner.h"

/*
 * One operation has finished. `op_flags`: the operation's flags, which say whose it is, and whether it wants an entry on a
 * selective endpoint, or was an inject, copied or not (no entry unless it failed). completion->endpoint is filled here.
 */
void ofpi_endpoint_complete(struct ofp_endpoint *endpoint, uint64_t op_flags, struct ofp_completion *completion);
/* From within `finish`: the completion goes to the owner before. */
void ofpi_owner_deliver(const struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                        struct ofp_completion *completion);

#endif
