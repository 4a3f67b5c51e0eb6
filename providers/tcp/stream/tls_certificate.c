/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Certificates. Each side checks the other's: the chain up to an authority of this side, validity, usage for the role, and
 * that it names the IP address at the other end of the connection, or the name of OFIPY_TLS_NAME. The acceptor checks the
 * address as well, since it sends to that address over this connection. The key is proven inside, as without TLS.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "stream/socket.h"
#include "stream/tls_state.h"

/* OpenSSL must not ask the terminal for the password of a private key. */
static int refuse_password(char *buffer, int size, int writing, void *unused)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)unused;
    return 0;
}

static int describe_file(const char *variable, const char *path, const char *why, char *text, size_t text_size)
{
    snprintf(text, text_size, "%s=%s: %s", variable, path, why);
    return -EINVAL;
}

static const char *read_reason(void)
{
    unsigned long error = tcp_library.ERR_get_error();
    const char *reason = tcp_library.ERR_reason_error_string(error);

    tcp_library.ERR_clear_error();
    return reason ? reason : "no file in the format PEM that can be read";
}

static int check_private_file(const char *path, char *text, size_t text_size)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return describe_file("OFIPY_TLS_KEY", path, strerror(errno), text, text_size);
    if (status.st_mode & (S_IRWXG | S_IRWXO))
        return describe_file("OFIPY_TLS_KEY", path, "others than its owner may use the key; chmod 600", text,
                             text_size);
    return 0;
}

int tcp_tls_files_load(struct tcp_tls_context *context, char *text, size_t text_size)
{
    const struct tcp_library *library = &tcp_library;
    const struct tcp_tls_files *files = &context->files;
    int error = check_private_file(files->key, text, text_size);

    if (error)
        return error;
    library->ERR_clear_error();
    library->SSL_CTX_set_default_passwd_cb(context->settings, refuse_password);
    if (library->SSL_CTX_use_certificate_chain_file(context->settings, files->certificate) != 1)
        return describe_file("OFIPY_TLS_CERT", files->certificate, read_reason(), text, text_size);
    if (library->SSL_CTX_use_PrivateKey_file(context->settings, files->key, TLS_FILETYPE_PEM) != 1 ||
        library->SSL_CTX_check_private_key(context->settings) != 1)
        return describe_file("OFIPY_TLS_KEY", files->key, read_reason(), text, text_size);
    if (library->SSL_CTX_load_verify_file(context->settings, files->authority) != 1)
        return describe_file("OFIPY_TLS_CA", files->authority, read_reason(), text, text_size);
    return 0;
}

int tcp_tls_certificate_request(struct tcp_tls *tls, bool connector)
{
    const struct tcp_library *library = &tcp_library;
    const char *name = tls->context->files.name;
    struct X509_VERIFY_PARAM_st *demands = library->SSL_get0_param(tls->ssl);
    union tcp_address peer;
    const uint8_t *ip;
    size_t length;

    library->SSL_set_verify(tls->ssl, connector ? TLS_VERIFY_PEER : TLS_VERIFY_PEER | TLS_VERIFY_FAIL_IF_NO_PEER_CERT,
                            NULL);
    library->X509_VERIFY_PARAM_set_hostflags(demands, TLS_CHECK_NEVER_SUBJECT);
    if (name)
        return library->X509_VERIFY_PARAM_set1_host(demands, name, 0) == 1 ? 0 : -ENOMEM;
    if (!tcp_socket_get_peer_address(tls->stream->fd, &peer))
        return -errno;
    ip = tcp_address_get_ip(&peer, &length);
    return library->X509_VERIFY_PARAM_set1_ip(demands, ip, length) == 1 ? 0 : -ENOMEM;
}

bool tcp_tls_certificate_is_valid(const struct tcp_tls *tls)
{
    return tls->context->files.certificate && tcp_library.SSL_get0_peer_certificate(tls->ssl) &&
           tcp_library.SSL_get_verify_result(tls->ssl) == TLS_VERIFIED;
}

const char *tcp_tls_certificate_describe(const struct tcp_tls *tls)
{
    long result = tcp_library.SSL_get_verify_result(tls->ssl);

    return result == TLS_VERIFIED ? NULL : tcp_library.X509_verify_cert_error_string(result);
}
