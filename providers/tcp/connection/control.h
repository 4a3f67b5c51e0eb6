/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_CONTROL_H
#define TCP_CONTROL_H

#include "objects.h"

/* Send a control message in one write: libfabric fails if it reads half of one. */
int tcp_control_send(struct tcp_connection *connection, enum tcp_control_type type, const void *private_data,
                     size_t length);
int tcp_rdm_send(struct tcp_connection *connection, enum tcp_control_type type, const struct tcp_rdm *rdm);
/* Size of the private data of an RDM request or answer; they include the identity once it was requested. */
size_t tcp_rdm_compute_size(const struct tcp_connection *connection, enum tcp_control_type type);
/* Send a NACK, then end the connection. */
void tcp_request_reject(struct tcp_connection *connection, const void *data, size_t length);
/* The same with the reason that tcp_encryption_find_refusal has found, and a warning. */
void tcp_request_reject_unencrypted(struct tcp_connection *connection, int refusal);
/* Whether the peer has a key, and so can prove it. */
bool tcp_control_can_prove(const struct tcp_control *control);

/* Whether both sides send identities. */
bool tcp_control_can_identify(const struct tcp_connection *connection, const struct tcp_control *control);
/* Store the peer's identity. */
void tcp_identity_store(struct tcp_connection *connection, const uint8_t *identity);

/* Use the features of the extension that both sides support. */
void tcp_extension_accept(struct tcp_connection *connection, const struct tcp_control *control);

#endif
