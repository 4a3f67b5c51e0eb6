/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The used part of the binary interface of OpenSSL 3 (libssl.so.3 and libcrypto.so.3). The library is loaded when the
 * first domain encrypts, so no build and no other program needs it. tests/abi/check_openssl compares the types and the
 * constants with the real headers.
 */
#ifndef TCP_LIBRARY_H
#define TCP_LIBRARY_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* OpenSSL's objects. Only the library knows their layout. */
struct ssl_st;
struct ssl_ctx_st;
struct ssl_method_st;
struct ssl_session_st;
struct ssl_cipher_st;
struct bio_st;
struct bio_method_st;
struct evp_md_st;
struct x509_store_ctx_st;
struct x509_st;
struct X509_VERIFY_PARAM_st;
struct ossl_init_settings_st;

enum { TLS_ERROR_WANT_READ = 2, TLS_ERROR_WANT_WRITE = 3, TLS_ERROR_ZERO_RETURN = 6 };
enum {
    TLS_CONTROL_MODE = 33,
    TLS_CONTROL_READ_AHEAD = 41,
    TLS_CONTROL_MIN_VERSION = 123,
    TLS_CONTROL_MAX_VERSION = 124
};
enum { TLS_MODE_ACCEPT_MOVING_WRITE_BUFFER = 2, TLS_MODE_RELEASE_BUFFERS = 16 };
enum { TLS_VERIFY_PEER = 1, TLS_VERIFY_FAIL_IF_NO_PEER_CERT = 2, TLS_VERIFIED = 0 };
enum { TLS_FILETYPE_PEM = 1, TLS_CHECK_NEVER_SUBJECT = 0x20 };
enum { TLS_EXTENSION_OK = 0, TLS_EXTENSION_FATAL = 2, TLS_KEY_UPDATE_NOT_REQUESTED = 0 };
enum { TLS_VERSION_1_3 = 0x0304 };
enum { TLS_BIO_TYPE_SOURCE_SINK = 0x0400, TLS_BIO_CONTROL_EOF = 2, TLS_BIO_CONTROL_FLUSH = 11 };
enum { TLS_BIO_FLAG_READ = 1, TLS_BIO_FLAG_WRITE = 2, TLS_BIO_FLAG_IO_SPECIAL = 4, TLS_BIO_FLAG_RETRY = 8 };
/* The lower bits of an error are its reason. An alert of the peer is TLS_REASON_ALERTS and its number, a byte. */
enum { TLS_REASON_MASK = 0x7fffff, TLS_REASON_ALERTS = 1000, TLS_REASON_ALERTS_END = 1256 };
/* The alert of a peer for which the connection is not at fault: it has no memory, for example. */
enum { TLS_REASON_PEER_FAILED = TLS_REASON_ALERTS + 80 };
/* The library must not free its state at exit: a thread of ofipy may still use it then. */
#define TLS_INIT_NO_ATEXIT UINT64_C(0x00080000)
#define TLS_INIT_LOAD_STRINGS UINT64_C(0x00200002)

typedef int tls_choose_protocol(struct ssl_st *, const unsigned char **, unsigned char *, const unsigned char *,
                                unsigned, void *);
typedef int tls_find_session(struct ssl_st *, const unsigned char *, size_t, struct ssl_session_st **);
typedef int tls_use_session(struct ssl_st *, const struct evp_md_st *, const unsigned char **, size_t *,
                            struct ssl_session_st **);
typedef int tls_get_password(char *, int, int, void *);
typedef int tls_verify(int, struct x509_store_ctx_st *);
typedef int tls_bio_write(struct bio_st *, const char *, size_t, size_t *);
typedef int tls_bio_read(struct bio_st *, char *, size_t, size_t *);
typedef long tls_bio_control(struct bio_st *, int, long, void *);

/* The calls: result, name, parameters. */
#define TCP_TLS_CALLS(CALL)                                                                                            \
    CALL(int, OPENSSL_init_ssl, (uint64_t, const struct ossl_init_settings_st *))                                      \
    CALL(const struct ssl_method_st *, TLS_method, (void))                                                             \
    CALL(struct ssl_ctx_st *, SSL_CTX_new, (const struct ssl_method_st *))                                             \
    CALL(void, SSL_CTX_free, (struct ssl_ctx_st *))                                                                    \
    CALL(long, SSL_CTX_ctrl, (struct ssl_ctx_st *, int, long, void *))                                                 \
    CALL(int, SSL_CTX_set_ciphersuites, (struct ssl_ctx_st *, const char *))                                           \
    CALL(int, SSL_CTX_set_num_tickets, (struct ssl_ctx_st *, size_t))                                                  \
    CALL(int, SSL_CTX_set_alpn_protos, (struct ssl_ctx_st *, const unsigned char *, unsigned))                         \
    CALL(void, SSL_CTX_set_alpn_select_cb, (struct ssl_ctx_st *, tls_choose_protocol *, void *))                       \
    CALL(void, SSL_CTX_set_psk_find_session_callback, (struct ssl_ctx_st *, tls_find_session *))                       \
    CALL(void, SSL_CTX_set_psk_use_session_callback, (struct ssl_ctx_st *, tls_use_session *))                         \
    CALL(void, SSL_CTX_set_default_passwd_cb, (struct ssl_ctx_st *, tls_get_password *))                               \
    CALL(int, SSL_CTX_use_certificate_chain_file, (struct ssl_ctx_st *, const char *))                                 \
    CALL(int, SSL_CTX_use_PrivateKey_file, (struct ssl_ctx_st *, const char *, int))                                   \
    CALL(int, SSL_CTX_check_private_key, (const struct ssl_ctx_st *))                                                  \
    CALL(int, SSL_CTX_load_verify_file, (struct ssl_ctx_st *, const char *))                                           \
    CALL(struct X509_VERIFY_PARAM_st *, SSL_get0_param, (struct ssl_st *))                                             \
    CALL(int, X509_VERIFY_PARAM_set1_ip, (struct X509_VERIFY_PARAM_st *, const unsigned char *, size_t))               \
    CALL(int, X509_VERIFY_PARAM_set1_host, (struct X509_VERIFY_PARAM_st *, const char *, size_t))                      \
    CALL(void, X509_VERIFY_PARAM_set_hostflags, (struct X509_VERIFY_PARAM_st *, unsigned))                             \
    CALL(long, SSL_get_verify_result, (const struct ssl_st *))                                                         \
    CALL(const char *, X509_verify_cert_error_string, (long))                                                          \
    CALL(struct x509_st *, SSL_get0_peer_certificate, (const struct ssl_st *))                                         \
    CALL(struct ssl_st *, SSL_new, (struct ssl_ctx_st *))                                                              \
    CALL(void, SSL_free, (struct ssl_st *))                                                                            \
    CALL(int, SSL_set_ex_data, (struct ssl_st *, int, void *))                                                         \
    CALL(void *, SSL_get_ex_data, (const struct ssl_st *, int))                                                        \
    CALL(void, SSL_set_bio, (struct ssl_st *, struct bio_st *, struct bio_st *))                                       \
    CALL(void, SSL_set_verify, (struct ssl_st *, int, tls_verify *))                                                   \
    CALL(void, SSL_set_connect_state, (struct ssl_st *))                                                               \
    CALL(void, SSL_set_accept_state, (struct ssl_st *))                                                                \
    CALL(int, SSL_has_pending, (const struct ssl_st *))                                                                \
    CALL(int, SSL_do_handshake, (struct ssl_st *))                                                                     \
    CALL(int, SSL_read_ex, (struct ssl_st *, void *, size_t, size_t *))                                                \
    CALL(int, SSL_write_ex, (struct ssl_st *, const void *, size_t, size_t *))                                         \
    CALL(int, SSL_get_error, (const struct ssl_st *, int))                                                             \
    CALL(int, SSL_shutdown, (struct ssl_st *))                                                                         \
    CALL(int, SSL_key_update, (struct ssl_st *, int))                                                                  \
    CALL(int, SSL_session_reused, (const struct ssl_st *))                                                             \
    CALL(void, SSL_get0_alpn_selected, (const struct ssl_st *, const unsigned char **, unsigned *))                    \
    CALL(int, SSL_export_keying_material,                                                                              \
         (struct ssl_st *, unsigned char *, size_t, const char *, size_t, const unsigned char *, size_t, int))         \
    CALL(const struct ssl_cipher_st *, SSL_get_current_cipher, (const struct ssl_st *))                                \
    CALL(uint16_t, SSL_CIPHER_get_protocol_id, (const struct ssl_cipher_st *))                                         \
    CALL(const struct ssl_cipher_st *, SSL_CIPHER_find, (struct ssl_st *, const unsigned char *))                      \
    CALL(struct ssl_session_st *, SSL_SESSION_new, (void))                                                             \
    CALL(void, SSL_SESSION_free, (struct ssl_session_st *))                                                            \
    CALL(int, SSL_SESSION_set1_master_key, (struct ssl_session_st *, const unsigned char *, size_t))                   \
    CALL(int, SSL_SESSION_set_cipher, (struct ssl_session_st *, const struct ssl_cipher_st *))                         \
    CALL(int, SSL_SESSION_set_protocol_version, (struct ssl_session_st *, int))                                        \
    CALL(struct bio_method_st *, BIO_meth_new, (int, const char *))                                                    \
    CALL(void, BIO_meth_free, (struct bio_method_st *))                                                                \
    CALL(int, BIO_meth_set_write_ex, (struct bio_method_st *, tls_bio_write *))                                        \
    CALL(int, BIO_meth_set_read_ex, (struct bio_method_st *, tls_bio_read *))                                          \
    CALL(int, BIO_meth_set_ctrl, (struct bio_method_st *, tls_bio_control *))                                          \
    CALL(struct bio_st *, BIO_new, (const struct bio_method_st *))                                                     \
    CALL(int, BIO_free, (struct bio_st *))                                                                             \
    CALL(void, BIO_set_data, (struct bio_st *, void *))                                                                \
    CALL(void *, BIO_get_data, (struct bio_st *))                                                                      \
    CALL(void, BIO_set_init, (struct bio_st *, int))                                                                   \
    CALL(void, BIO_set_flags, (struct bio_st *, int))                                                                  \
    CALL(void, BIO_clear_flags, (struct bio_st *, int))                                                                \
    CALL(void, ERR_clear_error, (void))                                                                                \
    CALL(unsigned long, ERR_peek_error, (void))                                                                        \
    CALL(unsigned long, ERR_get_error, (void))                                                                         \
    CALL(const char *, ERR_reason_error_string, (unsigned long))

#define TCP_TLS_MEMBER(result, name, parameters) result(*name) parameters;
/* Constant after tcp_library_load has returned 0. */
extern struct tcp_library {
    TCP_TLS_CALLS(TCP_TLS_MEMBER)
} tcp_library;
#undef TCP_TLS_MEMBER

/* Guards the loading of the library; the provider has it held across fork. */
extern pthread_mutex_t tcp_library_lock;

/* Load the library once per process. 0, or -ENODEV with a text that names the package. Any thread may call it. */
int tcp_library_load(char *text, size_t text_size);

#endif
