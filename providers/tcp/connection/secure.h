/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_SECURE_H
#define TCP_SECURE_H

#include "objects.h"

/* Read OFIPY_ENCRYPTION, and prepare encryption if it is on. The domain's key is read already. 0, or a negative errno. */
int tcp_encryption_open(struct tcp_domain *domain, char *text, size_t text_size);
/* Encrypt a connection that this side opened, if that is due. Repeated calls do nothing. 0, or a negative errno. */
int tcp_encryption_start(struct tcp_connection *connection);
/* Find out by its first byte whether the peer's connection is encrypted, before anything is read. 0, or a negative errno. */
int tcp_encryption_accept(struct tcp_connection *connection);
/* Whether the peer's request came in plain, and this side accepts encrypted connections alone. */
bool tcp_encryption_is_missing(const struct tcp_connection *connection);
/* Log why the request of such a peer is rejected. */
void tcp_encryption_warn(const struct tcp_connection *connection);
/* End a connection whose peer rejected it for that. */
void tcp_connection_end_for_encryption(struct tcp_connection *connection);
/* End a connection whose encrypted stream failed, `error` 0 or positive. False: it is plain, or has not failed. */
bool tcp_connection_end_failed_stream(struct tcp_connection *connection, int error);

#endif
