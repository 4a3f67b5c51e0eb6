/* SPDX-License-Identifier: BSD-3-Clause */
/* Where finished operations go: to their owner. Caller holds the domain's lock. */
#ifndef OFPI_COMPLETION_H
#define OFPI_COMPLETION_H

#include "owner.h"

/* Internal bit of ofp_operation.flags: an inject whose payload the core has copied, so that the provider knows of none. */
#define OFPI_COPIED (1ull << 59)

/*
 * Internal bit of ofp_operation.flags: a hook holds it back, and its owner is a struct ofpi_hooked that knows until when. It
 * waits in the peer's backlog.
 */
#define OFPI_DELAYED (1ull << 57)

/* Completions of the receive queue; a released multi-receive buffer may say nothing else. */
#define OFPI_COMPLETED_AT_RECEIVER (OFP_COMPLETED_RECV | OFP_COMPLETED_MULTI_RECV)

/*
 * One operation has finished. `op_flags`: the operation's flags, which say whose it is, and whether it wants an entry on a
 * selective endpoint, or was an inject, copied or not (no entry unless it failed). completion->endpoint is filled here.
 */
void ofpi_endpoint_complete(struct ofp_endpoint *endpoint, uint64_t op_flags, struct ofp_completion *completion);

#endif
