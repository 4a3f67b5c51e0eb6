/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_PROBE_H
#define TCP_PROBE_H

#include "objects.h"

/*
 * Find out whether the peer still listens; tcp_connection_end follows, maybe within the call. Closes the connection's
 * socket. `error`: the positive errno that ended the stream. False: there is no memory, and the connection is as before.
 */
bool tcp_probe_start(struct tcp_connection *connection, int error);
/* Handle an event on the probe's socket. */
void tcp_probe_progress(struct tcp_connection *connection);

#endif
