/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_AUTH_H
#define TCP_AUTH_H

#include "objects.h"
#include "proof/proof.h"

/* How the keys of both sides differ. */
enum tcp_key_place {
    TCP_KEY_IS_HERE,
    TCP_KEY_IS_THERE,
    TCP_LOCAL_KEY_IS_HERE,
    TCP_LOCAL_KEY_IS_THERE,
    TCP_KEYS_DIFFER,
    TCP_HOSTS_DIFFER /* or the keys: the proof covers both */
};
/* The difference, as far as this side knows it: only one side has a key. */
enum tcp_key_place tcp_key_find_place(const struct tcp_connection *connection);
/* Log the difference as a warning. */
void tcp_key_warn(const struct tcp_connection *connection, enum tcp_key_place place);
/* End the connection: only one side has a key, and one of them rejected the other. */
void tcp_connection_end_for_key(struct tcp_connection *connection, int error, enum tcp_key_place place);
/*
 * Both sides have a key, and one of them rejected the proof of the other: begin again with the next key, or end the
 * connection if there is none.
 */
void tcp_connection_end_for_wrong_key(struct tcp_connection *connection);
/* Change to TCP_PROVING and send the hello. False: the connection is over. */
bool tcp_auth_start(struct tcp_connection *connection);
/* Send our proof. The acceptor does so when it accepts the connection. */
void tcp_proof_send(struct tcp_connection *connection);
/* Add the nonces, then the addresses, of the connector and of the acceptor: every proof of a connection covers them. */
void tcp_transcript_add_ends(struct ofpi_transcript *transcript, const struct tcp_connection *connection);
/* And if the connection is encrypted, what ties the proof to its encryption. */
void tcp_transcript_add_encryption(struct ofpi_transcript *transcript, const struct tcp_connection *connection);
/* The words of a nonce or a proof, as bytes in little-endian order. */
void tcp_words_encode(const uint64_t words[TCP_NONCE_WORDS], uint8_t bytes[TCP_NONCE_WORDS * 8]);
void tcp_words_decode(const uint8_t bytes[TCP_NONCE_WORDS * 8], uint64_t words[TCP_NONCE_WORDS]);
/*
 * Handle a message in state TCP_PROVING. True: the peer has proved the key. False: not yet, or the connection is over.
 */
bool tcp_auth_handle_message(struct tcp_connection *connection, const struct tcp_header *header);

#endif
