/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_AUTH_H
#define TCP_AUTH_H

#include "objects.h"

/* The key of the configuration, if there is one. -EACCES: it cannot be used; the log says why. */
int tcp_key_read(struct tcp_domain *domain, char *text, size_t text_size);
/* What a connection whose socket has an other end is to prove. */
int tcp_key_choose(struct tcp_connection *connection);
/* Which side has a key and the other has not, or another one. */
enum tcp_key_place {
    TCP_KEY_IS_HERE,
    TCP_KEY_IS_THERE,
    TCP_LOCAL_KEY_IS_HERE,
    TCP_LOCAL_KEY_IS_THERE,
    TCP_KEYS_DIFFER
};
/* Of a connection with a key on one side, as far as this side knows. */
enum tcp_key_place tcp_key_find_place(const struct tcp_connection *connection);
/* For this side's operator. */
void tcp_key_warn(const struct tcp_connection *connection, enum tcp_key_place place);
/* The peer is refused, or refuses, since only one side has a key: the end of the connection. */
void tcp_connection_end_for_key(struct tcp_connection *connection, int error, enum tcp_key_place place);
/* The end of it, since each has a key, and not the same one. */
void tcp_connection_end_for_wrong_key(struct tcp_connection *connection);
/* Into state TCP_PROVING. False: the connection is over. */
bool tcp_auth_start(struct tcp_connection *connection);
/* Say our proof; the acceptor does once it takes the connection. */
void tcp_proof_send(struct tcp_connection *connection);
/* A message of a connection in that state. True: the peer is who it says; false: not yet, or the connection is over. */
bool tcp_auth_handle_message(struct tcp_connection *connection, const struct tcp_header *header);

#endif
