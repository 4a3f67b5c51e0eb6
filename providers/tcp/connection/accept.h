/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ACCEPT_H
#define TCP_ACCEPT_H

#include "objects.h"

/* The manager of native/meet uses RDM connections by it. */
extern const struct ofpi_meeting_ops tcp_meeting_ops;

void tcp_request_arrived(struct tcp_connection *connection, const struct tcp_control *control,
                         const uint8_t *private_data);
/*
 * Decide about an RDM request and answer it. `control` and `rdm`: the request; NULL if it was answered before the proof.
 */
void tcp_request_serve(struct tcp_connection *connection, const struct tcp_control *control, const struct tcp_rdm *rdm);

#endif
