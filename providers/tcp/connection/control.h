/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_CONTROL_H
#define TCP_CONTROL_H

#include "objects.h"

/* In one write: a stock peer that finds half of it gives up. */
int tcp_control_send(struct tcp_connection *connection, enum tcp_control_type type, const void *private_data,
                     size_t length);
int tcp_rdm_send(struct tcp_connection *connection, enum tcp_control_type type, const struct tcp_rdm *rdm);
/* Its private data, or those of the other side: with the identity when that was asked for. */
size_t tcp_rdm_compute_size(const struct tcp_connection *connection, enum tcp_control_type type);
/* Say no, and nothing more. */
void tcp_request_reject(struct tcp_connection *connection, const void *data, size_t length);
/* Whether the peer offers to prove what we want proven. */
bool tcp_control_can_prove(const struct tcp_control *control);

/* Whether both sides say which endpoint they are. */
bool tcp_control_can_identify(const struct tcp_connection *connection, const struct tcp_control *control);
/* The other side has. */
void tcp_identity_store(struct tcp_connection *connection, const uint8_t *identity);

/* Take what the other side offers, as far as we do too. */
void tcp_extension_accept(struct tcp_connection *connection, const struct tcp_control *control);

#endif
