/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_KEY_H
#define TCP_KEY_H

#include "objects.h"
#include "proof/proof.h"

/* Whether peers must prove a key. It does not change while the domain is open, though the key may. */
static inline bool tcp_domain_has_key(const struct tcp_domain *domain) { return domain->keys.ring != NULL; }

/*
 * Choose the key to prove on this connection, after the files of keys were read again if they have changed. The socket
 * must be connected, since the peer's address matters. 0, or a negative errno.
 */
int tcp_key_choose(struct tcp_connection *connection);
/*
 * Whether a proof of the peer is valid. The connector has chosen the key. The acceptor accepts each key of its ring, and
 * from now on proves the one that the connector has.
 */
bool tcp_key_verify(const struct tcp_connection *connection, const struct ofpi_transcript *transcript,
                    const uint8_t proof[OFPI_PROOF_SIZE]);
/* Whether the connector has a further key to try, which it then proves in the next attempt. */
bool tcp_key_advance(const struct tcp_connection *connection);

#endif
