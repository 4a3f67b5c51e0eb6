/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_PENDING_H
#define TCP_PENDING_H

#include "objects.h"

/* All bytes were written or copied. The operation completes unless it waits for an acknowledgement. */
void tcp_pending_sent(struct ofp_pending *pending);
bool tcp_acks_complete_first(struct tcp_connection *connection, int error, int provider_error);

#endif
