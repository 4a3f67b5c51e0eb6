/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ACCEPT_H
#define TCP_ACCEPT_H

#include "objects.h"

/* A request, as the manager of native/meet passes it on. */
struct tcp_request {
    struct tcp_connection *connection;
    const struct tcp_control *control; /* these two: NULL if the request was answered before the proof */
    const struct tcp_rdm *rdm;
};

/* As ofpi_meeting_ops.accept and .refuse; `request`: struct tcp_request. */
int tcp_request_accept(struct ofp_peer *peer, void *request);
void tcp_request_refuse(struct ofp_peer *peer, void *request);
void tcp_request_arrived(struct tcp_connection *connection, const struct tcp_control *control,
                         const uint8_t *private_data);
/*
 * Decide about an RDM request and answer it. `control` and `rdm`: the request; NULL if it was answered before the proof.
 */
void tcp_request_serve(struct tcp_connection *connection, const struct tcp_control *control, const struct tcp_rdm *rdm);

#endif
