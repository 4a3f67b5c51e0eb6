/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_COMMON_H
#define TCP_COMMON_H

#include "objects.h"

/* First pause before stalled connections are retried; later pauses are longer. */
#define TCP_STALL_PAUSE (TCP_MILLISECOND / 4)
int tcp_endpoint_open_common(struct tcp_endpoint *endpoint, struct ofp_domain *domain,
                             const struct tcp_connection_ops *ops, bool shares_poller);
void tcp_endpoint_close_common(struct tcp_endpoint *endpoint);

#endif
