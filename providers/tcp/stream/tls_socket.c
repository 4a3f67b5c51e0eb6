/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between OpenSSL and the socket of an encrypted stream. OpenSSL writes records into the context's output buffer, which
 * leaves at the end of the stream's call; what the socket does not accept is stored with the stream. OpenSSL reads records
 * from the context's input buffer, which is filled with as many as fit into the memory of the stream's caller.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "stream/tls_state.h"

/* A peer may demand answers (key updates) without reading them; beyond this many stored bytes its stream has failed. */
#define UNSENT_MAX (256 * 1024)

int tcp_tls_mark_failed(struct tcp_tls *tls, int error, const char *why)
{
    if (!tls->error) {
        tls->error = error;
        tls->stream->ended = true;
        snprintf(tls->failure, sizeof(tls->failure), "%s", why);
    }
    return tls->error;
}

static void mark_socket_failed(struct tcp_tls *tls, int error)
{
    char text[OFP_TEXT_MAX];
    bool ended = error == EPIPE || error == ECONNRESET;

    snprintf(text, sizeof(text), "%s%s", ended ? "the peer ended the connection: " : "", strerror(error));
    tcp_tls_mark_failed(tls, -error, text);
}

/* ------------------------------------------------------------------------------------------------------------- output */

/* Write what the socket accepts. Returns its length; an error is stored. */
static size_t send_bytes(struct tcp_tls *tls, const char *bytes, size_t length)
{
    size_t sent = 0;

    while (sent < length && !tls->error) {
        ssize_t result = send(tls->stream->fd, bytes + sent, length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (result >= 0)
            sent += (size_t)result;
        else if (errno == EAGAIN || errno == ENOTCONN)
            break;
        else if (errno != EINTR)
            mark_socket_failed(tls, errno);
    }
    return sent;
}

static void store_unsent_bytes(struct tcp_tls *tls, const char *bytes, size_t length)
{
    size_t stored = tls->unsent_end - tls->unsent_begin;
    char *unsent = stored + length <= UNSENT_MAX ? malloc(stored + length) : NULL;

    if (!unsent && stored + length <= UNSENT_MAX) {
        tcp_tls_mark_failed(tls, -ENOMEM, "no memory for encrypted bytes that the socket does not accept yet");
        return;
    }
    if (!unsent) {
        tcp_tls_mark_failed(tls, -ENOBUFS, "the peer reads none of what it demands");
        return;
    }
    if (stored)
        memcpy(unsent, tls->unsent + tls->unsent_begin, stored);
    memcpy(unsent + stored, bytes, length);
    free(tls->unsent);
    tls->unsent = unsent;
    tls->unsent_begin = 0;
    tls->unsent_end = stored + length;
    tls->stream->unsent = true;
}

/* Send the records of this call. */
void tcp_tls_flush_output(struct tcp_tls *tls)
{
    struct tcp_tls_context *context = tls->context;
    size_t length = context->output_length;
    size_t sent = tls->stream->unsent ? 0 : send_bytes(tls, context->output, length);

    context->output_length = 0;
    if (sent < length && !tls->error)
        store_unsent_bytes(tls, context->output + sent, length - sent);
}

/* 0: nothing is stored any more; -EAGAIN: the socket accepts no more; another negative errno: the stream has failed. */
int tcp_tls_flush_unsent(struct tcp_tls *tls)
{
    tls->unsent_begin += send_bytes(tls, tls->unsent + tls->unsent_begin, tls->unsent_end - tls->unsent_begin);
    if (tls->error)
        return tls->error;
    if (tls->unsent_begin < tls->unsent_end)
        return -EAGAIN;
    free(tls->unsent);
    tls->unsent = NULL;
    tls->unsent_begin = tls->unsent_end = 0;
    tls->stream->unsent = false;
    if (tls->output_ended)
        shutdown(tls->stream->fd, SHUT_WR);
    return 0;
}

int tcp_tls_socket_write(struct bio_st *bio, const char *bytes, size_t length, size_t *written)
{
    struct tcp_tls *tls = tcp_library.BIO_get_data(bio);
    struct tcp_tls_context *context = tls->context;

    for (size_t part, done = 0; done < length; done += part) {
        if (context->output_length == sizeof(context->output))
            tcp_tls_flush_output(tls);
        part = sizeof(context->output) - context->output_length;
        part = part < length - done ? part : length - done;
        memcpy(context->output + context->output_length, bytes + done, part);
        context->output_length += part;
    }
    *written = length;
    return !tls->error;
}

/* ------------------------------------------------------------------------------------------------------------- input */

/* As recv(2). 0: the socket is empty, or its input has ended or failed, which is stored. */
static size_t receive_bytes(struct tcp_tls *tls, char *bytes, size_t length)
{
    ssize_t result;

    do
        result = recv(tls->stream->fd, bytes, length, MSG_DONTWAIT);
    while (result < 0 && errno == EINTR);
    if (result == 0)
        tls->end_of_file = true;
    else if (result < 0 && errno != EAGAIN && errno != ENOTCONN)
        mark_socket_failed(tls, errno);
    return result > 0 ? (size_t)result : 0;
}

/*
 * Read several records at once. All their contents, and the rest of a record that OpenSSL has in part, must fit into the
 * caller's memory with a byte to spare. So OpenSSL gets all of `input` before the call ends. False: nothing was read.
 */
bool tcp_tls_fill_input(struct tcp_tls *tls)
{
    struct tcp_tls_context *context = tls->context;
    size_t most = tls->space > TCP_TLS_RECORD_MAX ? tls->space - TCP_TLS_RECORD_MAX : 0;

    OFP_CHECK(context->input_begin == context->input_end);
    context->input_begin = context->input_end = 0;
    if (most)
        context->input_end =
            receive_bytes(tls, context->input, most < sizeof(context->input) ? most : sizeof(context->input));
    return context->input_end > 0;
}

/* Where little memory is left, and during the handshake, OpenSSL reads record by record. */
bool tcp_tls_can_fill_input(const struct tcp_tls *tls) { return tls->space > TCP_TLS_RECORD_MAX; }

int tcp_tls_socket_read(struct bio_st *bio, char *bytes, size_t length, size_t *received)
{
    const int flags = TLS_BIO_FLAG_READ | TLS_BIO_FLAG_WRITE | TLS_BIO_FLAG_IO_SPECIAL | TLS_BIO_FLAG_RETRY;
    struct tcp_tls *tls = tcp_library.BIO_get_data(bio);
    struct tcp_tls_context *context = tls->context;

    tcp_library.BIO_clear_flags(bio, flags);
    *received = 0;
    if (context->input_begin < context->input_end || (tcp_tls_can_fill_input(tls) && tcp_tls_fill_input(tls))) {
        size_t stored = context->input_end - context->input_begin;

        *received = stored < length ? stored : length;
        memcpy(bytes, context->input + context->input_begin, *received);
        context->input_begin += *received;
    } else if (!tcp_tls_can_fill_input(tls)) {
        *received = receive_bytes(tls, bytes, length);
    }
    if (!*received && !tls->end_of_file && !tls->error)
        tcp_library.BIO_set_flags(bio, TLS_BIO_FLAG_READ | TLS_BIO_FLAG_RETRY);
    return *received > 0;
}

long tcp_tls_socket_query(struct bio_st *bio, int command, long number, void *pointer)
{
    const struct tcp_tls *tls = tcp_library.BIO_get_data(bio);

    (void)number;
    (void)pointer;
    if (command == TLS_BIO_CONTROL_EOF)
        return tls->end_of_file;
    return command == TLS_BIO_CONTROL_FLUSH;
}
