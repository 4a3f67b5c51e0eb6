/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_PENDING_H
#define TCP_PENDING_H

#include "objects.h"

/* The kernel has all of it, or the acknowledgement is here. */
void tcp_pending_sent(struct ofp_pending *pending);
bool tcp_acks_complete_first(struct tcp_connection *connection, int error, int provider_error);

#endif
