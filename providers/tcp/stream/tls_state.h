/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of encrypted streams, for tls.c, tls_context.c and tls_socket.c. */
#ifndef TCP_TLS_STATE_H
#define TCP_TLS_STATE_H

#include "objects.h"
#include "proof/sha256.h"
#include "stream/library.h"
#include "stream/stream.h"
#include "stream/tls_files.h"

/* The protocol that both sides must name (RFC 7301), with its length in front. */
#define TCP_TLS_PROTOCOL "\x07ofipy/1"
/* The largest record on the wire: 16 KiB, the header, the content type, and the cipher's tag. */
#define TCP_TLS_RECORD_MAX (16384 + 256)
/* Records are sent together as soon as they have so many bytes. */
#define TCP_TLS_BATCH 65536

/* Protected by the domain's lock. `input` and `output` are empty between two calls of a stream. */
struct tcp_tls_context {
    struct ssl_ctx_st *settings;
    struct bio_method_st *socket; /* how OpenSSL reads and writes the sockets of the streams */
    struct tcp_tls_files files;
    uint64_t records_per_key; /* so many records are encrypted with one key, then with the next */
    size_t output_length;
    size_t input_begin, input_end;                   /* the part of `input` that OpenSSL has not got */
    char plain[16384];                               /* pieces of memory that share a record */
    char input[TCP_TLS_BATCH];                       /* records of the current call */
    char output[TCP_TLS_BATCH + TCP_TLS_RECORD_MAX]; /* records of the current call */
};

/* Owned by the stream: created by tcp_tls_start, freed when the stream is closed. */
struct tcp_tls {
    struct tcp_stream_ops ops; /* stream->ops points here */
    struct tcp_stream *stream;
    struct tcp_tls_context *context;
    struct ofpi_keyring *ring; /* one user, until the handshake has ended; then NULL */
    uint32_t key_number;       /* of the key that this connector offers */
    struct ssl_st *ssl;
    char *unsent; /* encrypted bytes that the socket has not accepted: [unsent_begin, unsent_end) */
    size_t unsent_begin, unsent_end;
    size_t space;      /* bytes for which the caller of the present read still has memory; 0: no read */
    uint64_t records;  /* written with the present key */
    int error;         /* the negative errno of every further call; 0: none */
    bool answered;     /* this side has written a message of the handshake */
    bool established;  /* the handshake has ended */
    bool input_ended;  /* by the peer's close_notify */
    bool output_ended; /* by ours */
    bool end_of_file;  /* the socket's input has ended */
    uint16_t cipher;
    uint8_t export[OFPI_SHA256_SIZE];
    char failure[OFP_TEXT_MAX];
};

/* Store the first failure, with a negative errno. Returns the failure that is stored. */
int tcp_tls_mark_failed(struct tcp_tls *tls, int error, const char *why);
/* Send the records of the present call. */
void tcp_tls_flush_output(struct tcp_tls *tls);
/* Send what is stored. 0: nothing is left; -EAGAIN: the socket accepts no more; another negative errno: the stream failed. */
int tcp_tls_flush_unsent(struct tcp_tls *tls);
/* Whether several records may be read at once: there is memory for them, and the handshake is over. */
bool tcp_tls_can_fill_input(const struct tcp_tls *tls);
/* Read several records. False: nothing was read, or the socket has ended or failed. */
bool tcp_tls_fill_input(struct tcp_tls *tls);

/* Load the context's files into its settings. 0, or -EINVAL with a text. */
int tcp_tls_files_load(struct tcp_tls_context *context, char *text, size_t text_size);
/* Have the handshake check the peer's certificate, and whom it names. 0, or a negative errno. */
int tcp_tls_certificate_request(struct tcp_tls *tls, bool connector);
/* Whether the handshake was by certificates, and the peer's is valid. */
bool tcp_tls_certificate_is_valid(const struct tcp_tls *tls);
/* Why the peer's certificate is refused; NULL: it is not, or has not arrived. */
const char *tcp_tls_certificate_describe(const struct tcp_tls *tls);

/* The library's calls for the socket of a stream. They get the stream as the BIO's data. */
int tcp_tls_socket_write(struct bio_st *bio, const char *bytes, size_t length, size_t *written);
int tcp_tls_socket_read(struct bio_st *bio, char *bytes, size_t length, size_t *received);
long tcp_tls_socket_query(struct bio_st *bio, int command, long number, void *pointer);

#endif
