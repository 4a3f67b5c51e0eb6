/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OpenSSL alone: a ping-pong and a stream over one TCP connection that is encrypted as ofipy's are, by TLS 1.3 with a
 * pre-shared key and TLS_AES_128_GCM_SHA256, in records of 16 KiB. The socket does not block; both sides spin. Each call
 * returns 0, or -1 if the connection has failed. The module openssl_peer compiles this file, and owns the socket.
 */
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CIPHER "TLS_AES_128_GCM_SHA256"

static const unsigned char key[32] = "the key of a measurement, public";

static unsigned give_key(SSL *ssl, const char *hint, char *identity, unsigned most, unsigned char *psk,
                         unsigned most_psk)
{
    (void)ssl;
    (void)hint;
    if (most < 2 || most_psk < sizeof(key))
        return 0;
    strcpy(identity, "k");
    memcpy(psk, key, sizeof(key));
    return sizeof(key);
}

static unsigned find_key(SSL *ssl, const char *identity, unsigned char *psk, unsigned most)
{
    (void)ssl;
    (void)identity;
    if (most < sizeof(key))
        return 0;
    memcpy(psk, key, sizeof(key));
    return sizeof(key);
}

static int is_unfinished(SSL *ssl, int result)
{
    int error = SSL_get_error(ssl, result);

    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

/* NULL: the handshake has failed. */
SSL *tls_open(int fd, int connects)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    SSL *ssl;
    int result;

    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, CIPHER) != 1 || SSL_CTX_set_num_tickets(context, 0) != 1)
        return NULL;
    SSL_CTX_set_psk_client_callback(context, give_key);
    SSL_CTX_set_psk_server_callback(context, find_key);
    ssl = SSL_new(context);
    SSL_CTX_free(context);
    if (!ssl || SSL_set_fd(ssl, fd) != 1)
        return NULL;
    do
        result = connects ? SSL_connect(ssl) : SSL_accept(ssl);
    while (result != 1 && is_unfinished(ssl, result));
    return result == 1 ? ssl : NULL;
}

void tls_close(SSL *ssl) { SSL_free(ssl); }

static int send_bytes(SSL *ssl, const char *bytes, size_t length)
{
    size_t written;
    int result;

    do
        result = SSL_write_ex(ssl, bytes, length, &written);
    while (result != 1 && is_unfinished(ssl, result));
    return result == 1 ? 0 : -1;
}

static int receive_bytes(SSL *ssl, char *bytes, size_t length)
{
    for (size_t done = 0, part; done < length;) {
        int result = SSL_read_ex(ssl, bytes + done, length - done, &part);

        if (result == 1)
            done += part;
        else if (!is_unfinished(ssl, result))
            return -1;
    }
    return 0;
}

static int64_t read_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* `nanoseconds`: the time of each round trip; NULL: they are not timed. */
int tls_pingpong(SSL *ssl, int first, const char *out, char *in, size_t size, int64_t count, int64_t *nanoseconds)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t begin = nanoseconds ? read_clock() : 0;

        if (first && (send_bytes(ssl, out, size) != 0 || receive_bytes(ssl, in, size) != 0))
            return -1;
        if (!first && (receive_bytes(ssl, in, size) != 0 || send_bytes(ssl, out, size) != 0))
            return -1;
        if (nanoseconds)
            nanoseconds[i] = read_clock() - begin;
    }
    return 0;
}

/* So many messages from the first side, then one byte back. */
int tls_stream(SSL *ssl, int first, char *buffer, size_t size, int64_t count)
{
    char byte = 0;

    for (int64_t i = 0; i < count; i++)
        if ((first ? send_bytes(ssl, buffer, size) : receive_bytes(ssl, buffer, size)) != 0)
            return -1;
    return first ? receive_bytes(ssl, &byte, 1) : send_bytes(ssl, &byte, 1);
}
