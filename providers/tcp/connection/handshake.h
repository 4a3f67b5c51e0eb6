/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_HANDSHAKE_H
#define TCP_HANDSHAKE_H

#include "objects.h"

/* Handle an event on the socket of a connection that is not up. */
void tcp_handshake_progress(struct tcp_connection *connection);

#endif
