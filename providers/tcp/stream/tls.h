/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream over TLS 1.3 (RFC 8446), by OpenSSL. Both sides have a key: the handshake is by a pre-shared key that is
 * derived from it, with (EC)DHE; or by certificates of both sides. Session tickets and early data are off.
 */
#ifndef TCP_TLS_H
#define TCP_TLS_H

#include <stdint.h>

#include "proof/keyring.h"
#include "stream/stream.h"
#include "stream/tls_files.h"

#define TCP_TLS_EXPORT_SIZE OFPI_SHA256_SIZE

/*
 * The state that all encrypted streams of a domain share: OpenSSL's settings, and the buffer in which records are
 * encrypted. The domain owns it, and its lock protects it. It must outlive the streams.
 */
struct tcp_tls_context;

/* 0, or a negative errno with a text; -ENODEV: there is no OpenSSL. -EINVAL: a file cannot be used. */
int tcp_tls_context_create(struct tcp_tls_context **context, const struct tcp_tls_files *files, char *text,
                           size_t text_size);
/* NULL is allowed. */
void tcp_tls_context_free(struct tcp_tls_context *context);

/* This side of a handshake. */
struct tcp_tls_side {
    bool connector;            /* this side sends the first message, and offers one key; the acceptor accepts all */
    struct ofpi_keyring *ring; /* retained until the handshake ends */
    uint32_t key_number;       /* of the key that the connector offers */
};

/*
 * Encrypt a stream from its first byte. The handshake runs within the stream's readv and writev, which return -EAGAIN
 * until it has ended. 0, or -ENOMEM.
 */
int tcp_tls_start(struct tcp_stream *stream, struct tcp_tls_context *context, const struct tcp_tls_side *side);
bool tcp_stream_is_encrypted(const struct tcp_stream *stream);
/* IANA's number of the cipher suite; 0: the stream is not encrypted, or its handshake has not ended. */
uint16_t tcp_tls_get_cipher(const struct tcp_stream *stream);
/* Whether this side has sent a message of the handshake, or more: an acceptor has worked for the peer's first one then. */
bool tcp_tls_has_answered(const struct tcp_stream *stream);
/* Bytes that both ends of this one connection can derive, and nobody else. Only after the handshake. */
const uint8_t *tcp_tls_get_export(const struct tcp_stream *stream);
/* Store that the socket has failed, outside of the stream's calls. The first failure counts. */
void tcp_tls_fail(struct tcp_stream *stream, int error);
/* The negative errno with which the stream failed; 0: it is not encrypted, or has not failed. */
int tcp_tls_get_error(const struct tcp_stream *stream);
/* Why the stream failed; NULL: it is not encrypted, or has not failed. Valid until the stream is closed. */
const char *tcp_tls_get_failure(const struct tcp_stream *stream);

#endif
