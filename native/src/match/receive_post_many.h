/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting a multi-receive buffer. The domain's lock is held. */
#ifndef OFPI_RECEIVE_POST_MANY_H
#define OFPI_RECEIVE_POST_MANY_H

#include "ofipy/provider.h"

struct ofpi_receive_context;

/*
 * OFP_RECV or OFP_TRECV with OFP_MULTI_RECV: the buffer first receives unexpected messages, and is then posted. Without
 * `stays` it is bound to an incarnation that is over: it ends.
 */
int ofpi_receive_post_many(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                           const struct ofp_transfer *transfer, bool stays);

#endif
