/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_SECURE_H
#define TCP_SECURE_H

#include "objects.h"

/* The peer's request is not rejected; else a TCP_REFUSED_… of wire.h. */
#define TCP_NOT_REFUSED (-1)

/* Read OFIPY_ENCRYPTION. The domain's key is read already. 0, or a negative errno with a text. */
int tcp_encryption_open(struct tcp_domain *domain, char *text, size_t text_size);
/*
 * Load OpenSSL, unless that is done, if nothing works without: every connection is to be encrypted. 0, or a negative errno
 * with a text; -ENODEV: there is no OpenSSL.
 */
int tcp_encryption_check(struct tcp_domain *domain, char *text, size_t text_size);
/*
 * Encrypt a connection that this side opened, if that is due. Repeated calls do nothing. False: the connection is over.
 */
bool tcp_encryption_start(struct tcp_connection *connection);
/* Find out by its first byte whether the peer's connection is encrypted. False: the connection is over. */
bool tcp_encryption_accept(struct tcp_connection *connection);
/* Whether the next input of a connection may be a part of its TLS handshake. */
bool tcp_encryption_is_pending(const struct tcp_connection *connection);
/* Whether the connection is plain because both sides are on this host, which their proofs cover. */
bool tcp_encryption_is_host_bound(const struct tcp_connection *connection);
/* Why the peer's request must be rejected by the rules of both sides. */
int tcp_encryption_find_refusal(const struct tcp_connection *connection, const struct tcp_control *control);
/* Log why it is rejected. */
void tcp_encryption_warn(const struct tcp_connection *connection, int refusal);
/* Check the peer's answer for what it says about encryption. False: the connection is over. */
bool tcp_encryption_check_answer(struct tcp_connection *connection, const struct tcp_control *control,
                                 const uint8_t *private_data);
/* End a connection whose encrypted stream failed, `error` 0 or positive. False: it is plain, or has not failed. */
bool tcp_connection_end_failed_stream(struct tcp_connection *connection, int error);

#endif
