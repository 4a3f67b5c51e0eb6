/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_PROBE_H
#define TCP_PROBE_H

#include "objects.h"

/* Find out whether somebody listens there still; the connection's socket is closed. `error`: why, positive. */
void tcp_probe_start(struct tcp_connection *connection, int error);
/* Somebody may have opened. */
void tcp_probe_progress(struct tcp_connection *connection);

#endif
