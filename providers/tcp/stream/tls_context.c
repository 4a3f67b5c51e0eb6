/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OpenSSL's settings for all streams of a domain: TLS 1.3 alone, by a pre-shared key or by certificates. With a key, a
 * side that does not know it cannot end the handshake: the acceptor has no certificate, and the connector trusts none.
 */
#include "stream/tls.h"
#include "stream/tls_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* AES-GCM may encrypt 2^24.5 records with one key (RFC 8446, 5.5). */
#define RECORDS_PER_KEY (UINT64_C(1) << 23)

/* Both have SHA-256, as the pre-shared key does. */
#define CIPHER_SUITES "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
static const unsigned char key_suite[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */

static const struct tcp_tls *tls_of_ssl(const struct ssl_st *ssl) { return tcp_library.SSL_get_ex_data(ssl, 0); }

/* A session that stands for a key. NULL: out of memory. */
static struct ssl_session_st *create_key_session(struct ssl_st *ssl, const struct ofpi_ring_key *key)
{
    const struct tcp_library *library = &tcp_library;
    const struct ssl_cipher_st *cipher = library->SSL_CIPHER_find(ssl, key_suite);
    struct ssl_session_st *session = library->SSL_SESSION_new();

    if (session && cipher && library->SSL_SESSION_set1_master_key(session, key->tls_key, OFPI_SHA256_SIZE) == 1 &&
        library->SSL_SESSION_set_cipher(session, cipher) == 1 &&
        library->SSL_SESSION_set_protocol_version(session, TLS_VERSION_1_3) == 1)
        return session;
    if (session)
        library->SSL_SESSION_free(session);
    return NULL;
}

/* The connector's key. */
static int get_key_session(struct ssl_st *ssl, const struct evp_md_st *hash, const unsigned char **identity,
                           size_t *identity_length, struct ssl_session_st **session)
{
    const struct tcp_tls *tls = tls_of_ssl(ssl);
    const struct ofpi_ring_key *key = &tls->ring->keys[tls->key_number];

    (void)hash;
    *session = create_key_session(ssl, key);
    *identity = (const unsigned char *)key->tls_identity;
    *identity_length = OFPI_KEY_IDENTITY_SIZE;
    return *session != NULL;
}

/* The key that the connector named. If this side has it not, the handshake fails, since there is no certificate. */
static int find_key_session(struct ssl_st *ssl, const unsigned char *identity, size_t identity_length,
                            struct ssl_session_st **session)
{
    const struct ofpi_keyring *ring = tls_of_ssl(ssl)->ring;

    *session = NULL;
    if (identity_length != OFPI_KEY_IDENTITY_SIZE)
        return 1;
    for (uint32_t i = 0; i < ring->count; i++)
        if (memcmp(identity, ring->keys[i].tls_identity, OFPI_KEY_IDENTITY_SIZE) == 0) {
            *session = create_key_session(ssl, &ring->keys[i]);
            return *session != NULL;
        }
    return 1;
}

static int choose_protocol(struct ssl_st *ssl, const unsigned char **chosen, unsigned char *chosen_length,
                           const unsigned char *offered, unsigned offered_length, void *unused)
{
    const unsigned char *own = (const unsigned char *)TCP_TLS_PROTOCOL;

    (void)ssl;
    (void)unused;
    for (unsigned at = 0; at < offered_length; at += 1u + offered[at])
        if (offered[at] == own[0] && offered_length - at > own[0] && memcmp(offered + at + 1, own + 1, own[0]) == 0) {
            *chosen = own + 1;
            *chosen_length = own[0];
            return TLS_EXTENSION_OK;
        }
    return TLS_EXTENSION_FATAL;
}

static bool set_up_context(struct tcp_tls_context *context)
{
    const struct tcp_library *library = &tcp_library;
    struct ssl_ctx_st *settings = context->settings = library->SSL_CTX_new(library->TLS_method());
    struct bio_method_st *socket = context->socket = library->BIO_meth_new(TLS_BIO_TYPE_SOURCE_SINK, "ofipy socket");

    if (!settings || !socket)
        return false;
    library->SSL_CTX_ctrl(settings, TLS_CONTROL_MODE, TLS_MODE_ACCEPT_MOVING_WRITE_BUFFER | TLS_MODE_RELEASE_BUFFERS,
                          NULL);
    if (!context->files.certificate) {
        library->SSL_CTX_set_psk_use_session_callback(settings, get_key_session);
        library->SSL_CTX_set_psk_find_session_callback(settings, find_key_session);
    }
    library->SSL_CTX_set_alpn_select_cb(settings, choose_protocol, NULL);
    return library->SSL_CTX_ctrl(settings, TLS_CONTROL_MIN_VERSION, TLS_VERSION_1_3, NULL) == 1 &&
           library->SSL_CTX_ctrl(settings, TLS_CONTROL_MAX_VERSION, TLS_VERSION_1_3, NULL) == 1 &&
           library->SSL_CTX_set_ciphersuites(settings, CIPHER_SUITES) == 1 &&
           library->SSL_CTX_set_num_tickets(settings, 0) == 1 &&
           library->SSL_CTX_set_alpn_protos(settings, (const unsigned char *)TCP_TLS_PROTOCOL,
                                            sizeof(TCP_TLS_PROTOCOL) - 1) == 0 &&
           library->BIO_meth_set_write_ex(socket, tcp_tls_socket_write) == 1 &&
           library->BIO_meth_set_read_ex(socket, tcp_tls_socket_read) == 1 &&
           library->BIO_meth_set_ctrl(socket, tcp_tls_socket_query) == 1;
}

int tcp_tls_context_create(struct tcp_tls_context **result, const struct tcp_tls_files *files, char *text,
                           size_t text_size)
{
    struct tcp_tls_context *context;
    int error = tcp_library_load(text, text_size);

    if (error)
        return error;
    context = calloc(1, sizeof(*context));
    if (!context)
        return -ENOMEM;
    context->records_per_key = RECORDS_PER_KEY;
    context->files = *files;
    if (!set_up_context(context)) {
        snprintf(text, text_size,
                 "OpenSSL refuses TLS 1.3 with %s: check its configuration, or set OFIPY_ENCRYPTION=off",
                 CIPHER_SUITES);
        error = -ENODEV;
    } else if (files->certificate) {
        error = tcp_tls_files_load(context, text, text_size);
    }
    if (error)
        tcp_tls_context_free(context);
    else
        *result = context;
    return error;
}

void tcp_tls_context_free(struct tcp_tls_context *context)
{
    if (!context)
        return;
    if (context->settings)
        tcp_library.SSL_CTX_free(context->settings);
    if (context->socket)
        tcp_library.BIO_meth_free(context->socket);
    free(context);
}
