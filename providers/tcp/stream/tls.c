/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes count as written once they are encrypted: OpenSSL cannot take a record back. What the socket does not accept is
 * stored with the stream, `unsent`, and nothing more is encrypted until it has left. So a stream stores one batch at most.
 *
 * A read goes on until its memory is full or the socket is empty, as recv(2) does. So a short read means an empty socket,
 * and no decrypted byte is left in OpenSSL that no event would announce.
 *
 * The stream's own copy of the table of operations is the first member of its state, so a plain stream pays nothing. The
 * caller holds the domain's lock.
 */
#include "stream/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "objects.h"
#include "ofipy/iov.h"
#include "stream/tls_state.h"

#define EXPORT_LABEL "EXPORTER-ofipy proof 1"

/* A side that refuses TLS may end the connection before it has read the first message, which resets the connection. */
#define NEEDS "both sides need the same OFIPY_AUTH_KEY_FILE and OFIPY_ENCRYPTION, and OFIPY_TLS_CERT both or neither"
static const char cut_handshake[] = "the peer ended the connection during the TLS handshake; " NEEDS;

static struct tcp_tls *tls_of_stream(const struct tcp_stream *stream)
{
    return (struct tcp_tls *)(void *)(uintptr_t)stream->ops;
}

/* ------------------------------------------------------------------------------------------------------------ failing */

/* SSL_get_error takes what other calls of this thread left behind for its own. */
static void clear_errors(void)
{
    if (tcp_library.ERR_peek_error())
        tcp_library.ERR_clear_error();
}

/* This side refuses the peer's certificate. */
static int fail_for_certificate(struct tcp_tls *tls, const char *why)
{
    char text[OFP_TEXT_MAX];

    if (!tls->context->files.certificate)
        return tcp_tls_mark_failed(
            tls, -EACCES,
            "the peer has a certificate, and this side a key alone; set OFIPY_TLS_CERT on both or neither");
    snprintf(
        text, sizeof(text),
        "the peer's certificate is refused (%s); it must be signed by OFIPY_TLS_CA, and name the peer's address or "
        "OFIPY_TLS_NAME",
        why);
    return tcp_tls_mark_failed(tls, -EACCES, text);
}

/* OpenSSL has reported a failure: find its cause. */
static int fail_with_reason(struct tcp_tls *tls)
{
    unsigned long error = tcp_library.ERR_get_error();
    const char *reason = tcp_library.ERR_reason_error_string(error);
    const char *refusal = tls->established ? NULL : tcp_tls_certificate_describe(tls);
    char text[OFP_TEXT_MAX];

    if (tls->error)
        return tls->error;
    if (refusal)
        return fail_for_certificate(tls, refusal);
    if ((error & TLS_REASON_MASK) == TLS_REASON_PEER_FAILED && !tls->established)
        return tcp_tls_mark_failed(tls, -ECONNRESET,
                                   "the peer failed during the TLS handshake, and has refused nothing");
    if ((error & TLS_REASON_MASK) >= TLS_REASON_ALERTS && (error & TLS_REASON_MASK) < TLS_REASON_ALERTS_END) {
        snprintf(text, sizeof(text), "the peer refused the TLS connection (%s); " NEEDS, reason ? reason : "no reason");
        return tcp_tls_mark_failed(tls, -EACCES, text);
    }
    if (tls->end_of_file && !tls->established)
        return tcp_tls_mark_failed(tls, -ECONNRESET, cut_handshake);
    if (tls->end_of_file)
        return tcp_tls_mark_failed(tls, -ECONNRESET,
                                   "the encrypted connection was cut: it ended without TLS's close_notify");
    if (!tls->established)
        snprintf(text, sizeof(text), "the TLS handshake failed (%s); " NEEDS, reason ? reason : "no reason");
    else
        snprintf(text, sizeof(text), "the encrypted connection carried a byte that its peer did not send (%s)",
                 reason ? reason : "no reason");
    return tcp_tls_mark_failed(tls, -EPROTO, text);
}

/* ---------------------------------------------------------------------------------------------------------- handshake */

/* The handshake has ended. Nothing counts if the peer used neither the key nor this protocol. */
static int check_handshake(struct tcp_tls *tls)
{
    const struct tcp_library *library = &tcp_library;
    const unsigned char *own = (const unsigned char *)TCP_TLS_PROTOCOL, *chosen = NULL;
    unsigned length = 0;

    library->SSL_get0_alpn_selected(tls->ssl, &chosen, &length);
    if (length != own[0] || memcmp(chosen, own + 1, length) != 0)
        return tcp_tls_mark_failed(tls, -EPROTO,
                                   "the peer speaks TLS and is not ofipy (it does not name the protocol ofipy/1)");
    if (tls->context->files.certificate ? !tcp_tls_certificate_is_valid(tls)
                                        : library->SSL_session_reused(tls->ssl) != 1)
        return tcp_tls_mark_failed(tls, -EACCES, "the peer has proven nothing in the TLS handshake; " NEEDS);
    if (library->SSL_export_keying_material(tls->ssl, tls->export, sizeof(tls->export), EXPORT_LABEL,
                                            sizeof(EXPORT_LABEL) - 1, NULL, 0, 0) != 1)
        return fail_with_reason(tls);
    tls->cipher = library->SSL_CIPHER_get_protocol_id(library->SSL_get_current_cipher(tls->ssl));
    tls->established = true;
    ofpi_keyring_release(tls->ring);
    tls->ring = NULL;
    return 0;
}

/* 0: the handshake has ended; -EAGAIN: it waits for the peer; another negative errno: the stream has failed. */
static int progress_handshake(struct tcp_tls *tls)
{
    int result, error;

    if (tls->error || tls->established)
        return tls->error;
    if (tls->stream->unsent && (error = tcp_tls_flush_unsent(tls)))
        return error;
    clear_errors();
    result = tcp_library.SSL_do_handshake(tls->ssl);
    error = tcp_library.SSL_get_error(tls->ssl, result);
    tls->answered |= tls->context->output_length > 0;
    tcp_tls_flush_output(tls);
    if (result == 1)
        return tls->error ? tls->error : check_handshake(tls);
    if (!tls->error && (error == TLS_ERROR_WANT_READ || error == TLS_ERROR_WANT_WRITE))
        return -EAGAIN;
    return fail_with_reason(tls);
}

/* ------------------------------------------------------------------------------------------------------- reading, writing */

/* Decrypt into one piece of memory. Returns the number of bytes; fewer than `length`: the socket is empty, or the end. */
static size_t read_piece(struct tcp_tls *tls, char *bytes, size_t length)
{
    size_t done = 0, part;

    while (done < length && tcp_library.SSL_read_ex(tls->ssl, bytes + done, length - done, &part) == 1) {
        done += part;
        tls->space -= part;
    }
    if (done < length) {
        int error = tcp_library.SSL_get_error(tls->ssl, 0);

        if (error == TLS_ERROR_ZERO_RETURN)
            tls->input_ended = tls->stream->ended = true;
        else if (error != TLS_ERROR_WANT_READ && error != TLS_ERROR_WANT_WRITE)
            fail_with_reason(tls);
    }
    return done;
}

static ssize_t read_tls_stream(struct tcp_stream *stream, const struct iovec *iov, int count)
{
    struct tcp_tls *tls = tls_of_stream(stream);
    size_t done = 0;
    int error = progress_handshake(tls);

    if (error)
        return error;
    clear_errors();
    for (int i = 0; i < count; i++)
        tls->space += iov[i].iov_len;
    /* Most polls find nothing: OpenSSL need not be called for that. */
    if (tcp_tls_can_fill_input(tls) && !tcp_library.SSL_has_pending(tls->ssl) && !tcp_tls_fill_input(tls) &&
        !tls->end_of_file) {
        tls->space = 0;
        return tls->error ? tls->error : -EAGAIN;
    }
    for (int i = 0; i < count && !tls->input_ended; i++) {
        size_t part = read_piece(tls, iov[i].iov_base, iov[i].iov_len);

        done += part;
        if (part < iov[i].iov_len)
            break;
    }
    tls->space = 0;
    OFP_CHECK(tls->error || tls->input_ended || tls->context->input_begin == tls->context->input_end);
    tls->context->input_begin = tls->context->input_end = 0;
    /* The peer may have demanded a new key. */
    if (tls->context->output_length)
        tcp_tls_flush_output(tls);
    if (done)
        return (ssize_t)done;
    if (tls->error)
        return tls->error;
    return tls->input_ended ? 0 : -EAGAIN;
}

/* The next record's bytes, at most 16 KiB. Short pieces are gathered, so that they share a record. */
static const char *gather_record(struct tcp_tls *tls, struct ofp_iov_walk *walk, struct iovec *piece, size_t *length)
{
    struct tcp_tls_context *context = tls->context;
    const size_t most = sizeof(context->plain);
    const char *bytes = piece->iov_base;

    if (piece->iov_len >= most) {
        piece->iov_base = (char *)piece->iov_base + most;
        piece->iov_len -= most;
        *length = most;
        return bytes;
    }
    *length = 0;
    do {
        size_t part = piece->iov_len < most - *length ? piece->iov_len : most - *length;

        memcpy(context->plain + *length, piece->iov_base, part);
        *length += part;
        piece->iov_base = (char *)piece->iov_base + part;
        piece->iov_len -= part;
    } while (*length < most && !piece->iov_len && ofp_iov_next(walk, piece));
    return context->plain;
}

static bool encrypt_record(struct tcp_tls *tls, const char *bytes, size_t length)
{
    size_t written = 0;

    if (++tls->records > tls->context->records_per_key) {
        tls->records = 1;
        tcp_library.SSL_key_update(tls->ssl, TLS_KEY_UPDATE_NOT_REQUESTED);
    }
    if (tcp_library.SSL_write_ex(tls->ssl, bytes, length, &written) == 1 && written == length)
        return true;
    fail_with_reason(tls);
    return false;
}

static ssize_t write_tls_stream(struct tcp_stream *stream, const struct iovec *iov, int count)
{
    struct tcp_tls *tls = tls_of_stream(stream);
    struct ofp_iov_walk walk = {iov, (uint32_t)count, 0, OFP_IOV_ALL};
    struct iovec piece = {NULL, 0};
    size_t done = 0, length;
    int error = progress_handshake(tls);

    if (!error && stream->unsent)
        error = tcp_tls_flush_unsent(tls);
    if (error)
        return error;
    clear_errors();
    while (!stream->unsent && !tls->error && (piece.iov_len || ofp_iov_next(&walk, &piece))) {
        const char *bytes = gather_record(tls, &walk, &piece, &length);

        if (!encrypt_record(tls, bytes, length))
            break;
        done += length;
        if (tls->context->output_length >= TCP_TLS_BATCH)
            tcp_tls_flush_output(tls);
    }
    tcp_tls_flush_output(tls);
    /* Nothing of a record that is lost here may count as written: no later call might tell of it. */
    return tls->error ? tls->error : (ssize_t)done;
}

static size_t count_outstanding_bytes(const struct tcp_stream *stream)
{
    const struct tcp_tls *tls = tls_of_stream(stream);

    return tls->unsent_end - tls->unsent_begin + tcp_plain_stream.pending(stream);
}

static void shut_down_tls_stream(struct tcp_stream *stream)
{
    struct tcp_tls *tls = tls_of_stream(stream);

    if (tls->established && !tls->error && !tls->output_ended) {
        clear_errors();
        tcp_library.SSL_shutdown(tls->ssl);
        tcp_tls_flush_output(tls);
    }
    tls->output_ended = true;
    if (!stream->unsent)
        shutdown(stream->fd, SHUT_WR);
}

static void free_tls(struct tcp_tls *tls)
{
    if (tls->ssl)
        tcp_library.SSL_free(tls->ssl);
    ofpi_keyring_release(tls->ring);
    explicit_bzero(tls->export, sizeof(tls->export));
    free(tls->unsent);
    free(tls);
}

static void close_tls_stream(struct tcp_stream *stream)
{
    struct tcp_tls *tls = tls_of_stream(stream);

    /* The peer must be able to tell this end from a cut. */
    if (!tls->output_ended)
        shut_down_tls_stream(stream);
    free_tls(tls);
    stream->ops = &tcp_plain_stream;
    stream->unsent = false;
    stream->ops->close(stream);
}

static int flush_tls_stream(struct tcp_stream *stream) { return tcp_tls_flush_unsent(tls_of_stream(stream)); }

static const struct tcp_stream_ops tls_stream = {
    .readv = read_tls_stream,
    .writev = write_tls_stream,
    .flush = flush_tls_stream,
    .pending = count_outstanding_bytes,
    .shutdown = shut_down_tls_stream,
    .close = close_tls_stream,
};

/* ------------------------------------------------------------------------------------------------------------ objects */

/* What the peer has to prove in the handshake. 0, or a negative errno. */
static int set_demands(struct tcp_tls *tls, bool connector)
{
    if (tls->context->files.certificate)
        return tcp_tls_certificate_request(tls, connector);
    /* A connector must not believe a certificate: it has no authority to check one by. */
    tcp_library.SSL_set_verify(tls->ssl, connector ? TLS_VERIFY_PEER : 0, NULL);
    return 0;
}

int tcp_tls_start(struct tcp_stream *stream, struct tcp_tls_context *context, const struct tcp_tls_side *side)
{
    const struct tcp_library *library = &tcp_library;
    struct tcp_tls *tls = calloc(1, sizeof(*tls));
    struct bio_st *bio;
    int error = 0;

    OFP_CHECK(!tcp_stream_is_encrypted(stream));
    if (!tls)
        return -ENOMEM;
    tls->ops = tls_stream;
    tls->stream = stream;
    tls->context = context;
    tls->ring = ofpi_keyring_retain(side->ring);
    tls->key_number = side->key_number;
    tls->ssl = library->SSL_new(context->settings);
    bio = tls->ssl ? library->BIO_new(context->socket) : NULL;
    if (bio) {
        library->BIO_set_data(bio, tls);
        library->BIO_set_init(bio, 1);
        library->SSL_set_bio(tls->ssl, bio, bio);
    }
    if (!bio || library->SSL_set_ex_data(tls->ssl, 0, tls) != 1)
        error = -ENOMEM;
    if (!error)
        error = set_demands(tls, side->connector);
    if (error) {
        free_tls(tls);
        return error;
    }
    if (side->connector)
        library->SSL_set_connect_state(tls->ssl);
    else
        library->SSL_set_accept_state(tls->ssl);
    stream->ops = &tls->ops;
    return 0;
}

bool tcp_stream_is_encrypted(const struct tcp_stream *stream) { return stream->ops != &tcp_plain_stream; }

uint16_t tcp_tls_get_cipher(const struct tcp_stream *stream)
{
    return tcp_stream_is_encrypted(stream) ? tls_of_stream(stream)->cipher : 0;
}

bool tcp_tls_has_answered(const struct tcp_stream *stream)
{
    return tcp_stream_is_encrypted(stream) && tls_of_stream(stream)->answered;
}

const uint8_t *tcp_tls_get_export(const struct tcp_stream *stream)
{
    OFP_CHECK(tcp_stream_is_encrypted(stream) && tls_of_stream(stream)->established);
    return tls_of_stream(stream)->export;
}

/*
 * A peer that refuses this side's certificate does so after this side's handshake has ended: an alert, then the end. If a
 * write found the end first, the alert waits in the socket.
 */
static void read_alert(struct tcp_tls *tls)
{
    int error = tls->error;
    size_t part;
    char byte;

    tls->error = 0;
    clear_errors();
    if (tcp_library.SSL_read_ex(tls->ssl, &byte, 1, &part) != 1 && tcp_library.ERR_peek_error())
        fail_with_reason(tls);
    tls->error = tls->error ? tls->error : error;
}

void tcp_tls_fail(struct tcp_stream *stream, int error)
{
    struct tcp_tls *tls = tcp_stream_is_encrypted(stream) ? tls_of_stream(stream) : NULL;

    if (!tls || (error != ECONNRESET && error != EPIPE))
        return;
    if (tls->established && tls->error)
        read_alert(tls);
    else if (!tls->established)
        tcp_tls_mark_failed(tls, -error, cut_handshake);
}

int tcp_tls_get_error(const struct tcp_stream *stream)
{
    return tcp_stream_is_encrypted(stream) ? tls_of_stream(stream)->error : 0;
}

const char *tcp_tls_get_failure(const struct tcp_stream *stream)
{
    return tcp_tls_get_error(stream) ? tls_of_stream(stream)->failure : NULL;
}
