/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_POST_H
#define TCP_POST_H

#include "objects.h"

int tcp_transfer_post(struct ofp_endpoint *base, struct ofp_peer *peer, const struct ofp_transfer *transfer);
/* As ofp_endpoint_ops.protocol_choose. */
bool tcp_protocol_choose(const struct ofp_peer *peer, const struct ofp_protocol_query *query,
                         struct ofp_protocol_choice *choice);

#endif
