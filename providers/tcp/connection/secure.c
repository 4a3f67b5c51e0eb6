/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which connections are encrypted. The rule is local (OFIPY_ENCRYPTION) and never negotiated, so nobody on the path can
 * talk two sides out of it: the connector encrypts from the first byte or not at all, and the acceptor refuses what its
 * own rule does not allow. The first byte of a connection tells TLS from the plain protocol, so both use one port.
 *
 * Where connections between hosts alone are encrypted (`auto`), a connection is plain only if both sides find that both
 * addresses are of their host, demand so in their control messages (TCP_CAPABILITY_HOST), and prove the key for the same
 * host. If anything of this fails, the connector tries again, encrypted.
 */
#include "connection/secure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "address/interface.h"
#include "connection/connect.h"
#include "connection/connection.h"
#include "connection/key.h"
#include "stream/socket.h"
#include "stream/tls.h"

#define ALIKE "set OFIPY_ENCRYPTION and OFIPY_TLS_CERT alike on both sides, with the same OFIPY_AUTH_KEY_FILE"

/* ------------------------------------------------------------------------------------------------------------ domains */

/* The value of a parameter; NULL: it is not set. */
static const char *read_parameter(const char *name)
{
    const char *value = tcp_core->param_string(name);

    return value && value[0] ? value : NULL;
}

static int read_files(struct tcp_tls_files *files, char *text, size_t text_size)
{
    *files = (struct tcp_tls_files){.certificate = read_parameter("TLS_CERT"),
                                    .key = read_parameter("TLS_KEY"),
                                    .authority = read_parameter("TLS_CA"),
                                    .name = read_parameter("TLS_NAME")};
    if (!files->certificate == !files->key && !files->certificate == !files->authority &&
        (files->certificate || !files->name))
        return 0;
    snprintf(text, text_size,
             "OFIPY_TLS_CERT, OFIPY_TLS_KEY and OFIPY_TLS_CA belong together, and some of them are not set; "
             "OFIPY_TLS_NAME means something with them alone");
    return -EINVAL;
}

static int parse_encryption(struct tcp_domain *domain, char *text, size_t text_size)
{
    const char *configured = tcp_core->param_string("ENCRYPTION");

    if (strcmp(configured, "required") == 0) {
        domain->encryption = TCP_ENCRYPT_ALL;
    } else if (strcmp(configured, "auto") == 0) {
        domain->encryption = domain->files.certificate ? TCP_ENCRYPT_BETWEEN_HOSTS : TCP_ENCRYPT_NONE;
    } else if (strcmp(configured, "off") == 0) {
        domain->encryption = TCP_ENCRYPT_NONE;
    } else {
        snprintf(text, text_size, "OFIPY_ENCRYPTION=%s: auto, required or off is meant", configured);
        return -EINVAL;
    }
    return 0;
}

/* Load OpenSSL, unless that is done. 0, or a negative errno with a text; -ENODEV: there is no OpenSSL. */
static int prepare_encryption(struct tcp_domain *domain, char *text, size_t text_size)
{
    if (domain->tls)
        return 0;
    return tcp_tls_context_create(&domain->tls, &domain->files, text, text_size);
}

int tcp_encryption_open(struct tcp_domain *domain, char *text, size_t text_size)
{
    char ignored[OFP_TEXT_MAX];
    int error = read_files(&domain->files, text, text_size);

    if (!error)
        error = parse_encryption(domain, text, text_size);
    if (error || domain->encryption == TCP_ENCRYPT_NONE)
        return error;
    if (!tcp_domain_has_key(domain)) {
        snprintf(
            text, text_size,
            "%s needs a key: make one (ofipy key new job.key), copy it to the peers, and set OFIPY_AUTH_KEY_FILE to "
            "it on both sides",
            domain->files.certificate ? "OFIPY_TLS_CERT" : "OFIPY_ENCRYPTION=required");
        return -EINVAL;
    }
    if (tcp_core->host_id(&domain->host_id, ignored, sizeof(ignored)) != 0)
        domain->host_id = 0;
    /* Without OpenSSL an endpoint may still serve this host. */
    error = prepare_encryption(domain, text, text_size);
    return error == -ENODEV ? 0 : error;
}

int tcp_encryption_check(struct tcp_domain *domain, char *text, size_t text_size)
{
    return domain->encryption == TCP_ENCRYPT_ALL ? prepare_encryption(domain, text, text_size) : 0;
}

/* --------------------------------------------------------------------------------------------------------- connections */

/*
 * Whether the socket's own addresses say that the peer is on this host. A forwarder on this host makes a remote peer look
 * local, so the proof covers the host as well.
 */
static bool is_known_within_host(const struct tcp_connection *connection)
{
    union tcp_address own, theirs;

    return connection->endpoint->domain->host_id && tcp_socket_get_address(connection->stream.fd, &own) &&
           tcp_socket_get_peer_address(connection->stream.fd, &theirs) && tcp_is_known_of_this_host(&own) &&
           tcp_is_known_of_this_host(&theirs);
}

/* 0, or a negative errno with a text. */
static int encrypt_stream(struct tcp_connection *connection, char *text, size_t text_size)
{
    struct tcp_domain *domain = connection->endpoint->domain;
    int error = prepare_encryption(domain, text, text_size);

    if (error)
        return error;
    return tcp_tls_start(&connection->stream, domain->tls,
                         &(struct tcp_tls_side){.connector = connection->connector,
                                                .ring = connection->meeting->ring,
                                                .key_number = connection->meeting->key_number});
}

bool tcp_encryption_start(struct tcp_connection *connection)
{
    const struct tcp_domain *domain = connection->endpoint->domain;
    char text[OFP_TEXT_MAX] = "";
    int error;

    if (domain->encryption == TCP_ENCRYPT_NONE || tcp_stream_is_encrypted(&connection->stream))
        return true;
    if (domain->encryption == TCP_ENCRYPT_BETWEEN_HOSTS && !connection->meeting->must_encrypt &&
        is_known_within_host(connection))
        return true;
    error = encrypt_stream(connection, text, sizeof(text));
    if (error)
        tcp_connection_end(connection, -error, false, text[0] ? text : NULL);
    return !error;
}

bool tcp_encryption_accept(struct tcp_connection *connection)
{
    const struct tcp_domain *domain = connection->endpoint->domain;
    char text[OFP_TEXT_MAX] = "";
    uint8_t first = 0;

    if (domain->encryption == TCP_ENCRYPT_NONE || tcp_stream_is_encrypted(&connection->stream) ||
        connection->meeting->received)
        return true;
    /* A plain read would take the first bytes of TLS if they arrived only now. */
    if (recv(connection->stream.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
        return false;
    if (first != TCP_TLS_HANDSHAKE)
        return true;
    if (encrypt_stream(connection, text, sizeof(text)) == 0)
        return true;
    if (text[0])
        tcp_refusal_log(connection, text);
    tcp_connection_discard(connection);
    return false;
}

bool tcp_encryption_is_pending(const struct tcp_connection *connection)
{
    if (connection->endpoint->domain->encryption == TCP_ENCRYPT_NONE)
        return false;
    if (tcp_stream_is_encrypted(&connection->stream))
        return !tcp_tls_get_cipher(&connection->stream);
    return connection->state == TCP_ACCEPTED && !connection->meeting->received;
}

bool tcp_encryption_is_host_bound(const struct tcp_connection *connection)
{
    return connection->endpoint->domain->encryption == TCP_ENCRYPT_BETWEEN_HOSTS &&
           !tcp_stream_is_encrypted(&connection->stream);
}

/* ----------------------------------------------------------------------------------------------------------- refusals */

static bool is_host_demanded(const struct tcp_control *control)
{
    return tcp_magic_is_extension(control->magic) && control->capabilities & TCP_CAPABILITY_HOST;
}

int tcp_encryption_find_refusal(const struct tcp_connection *connection, const struct tcp_control *control)
{
    const struct tcp_domain *domain = connection->endpoint->domain;

    if (tcp_stream_is_encrypted(&connection->stream))
        return TCP_NOT_REFUSED;
    if (domain->encryption == TCP_ENCRYPT_NONE)
        return tcp_domain_has_key(domain) && is_host_demanded(control) ? TCP_REFUSED_NEVER_ENCRYPTS : TCP_NOT_REFUSED;
    if (domain->encryption == TCP_ENCRYPT_BETWEEN_HOSTS && is_host_demanded(control) &&
        is_known_within_host(connection))
        return TCP_NOT_REFUSED;
    return TCP_REFUSED_UNENCRYPTED;
}

void tcp_encryption_warn(const struct tcp_connection *connection, int refusal)
{
    tcp_refusal_log(connection, refusal == TCP_REFUSED_UNENCRYPTED
                                    ? "its connection is not encrypted; " ALIKE
                                    : "it encrypts connections between hosts, and this side encrypts none; " ALIKE);
}

bool tcp_encryption_check_answer(struct tcp_connection *connection, const struct tcp_control *control,
                                 const uint8_t *private_data)
{
    bool refused = control->type == TCP_NACK && control->private_size == 1;

    if (refused && private_data[0] == TCP_REFUSED_UNENCRYPTED) {
        tcp_connection_end(connection, EACCES, false, "the peer accepts encrypted connections alone; " ALIKE);
        return false;
    }
    if ((refused && private_data[0] == TCP_REFUSED_NEVER_ENCRYPTS) ||
        (control->type == TCP_CONNRESP && tcp_encryption_is_host_bound(connection) && !is_host_demanded(control))) {
        tcp_connection_end(connection, EACCES, false,
                           "this side encrypts connections between hosts, and the peer encrypts none; " ALIKE);
        return false;
    }
    return true;
}

/* By the pre-shared key alone the peer refuses a handshake if it does not have the key. An end refuses nothing. */
static bool is_key_refused(const struct tcp_connection *connection)
{
    return !connection->endpoint->domain->files.certificate && !tcp_tls_get_cipher(&connection->stream) &&
           tcp_tls_get_error(&connection->stream) == -EACCES;
}

bool tcp_connection_end_failed_stream(struct tcp_connection *connection, int error)
{
    const char *failure;
    char text[OFP_TEXT_MAX];

    tcp_tls_fail(&connection->stream, error);
    failure = tcp_tls_get_failure(&connection->stream);
    if (!failure)
        return false;
    if (is_key_refused(connection) && tcp_connect_retry_key(connection))
        return true;
    snprintf(text, sizeof(text), "%s", failure);
    if (!connection->peer)
        tcp_refusal_log(connection, text);
    error = -tcp_tls_get_error(&connection->stream);
    /* This side refuses what does not fit its settings. An end refuses nothing. */
    if (error == EPROTO)
        error = EACCES;
    else if (error == EPIPE)
        error = ECONNRESET;
    tcp_connection_end(connection, error, false, text);
    return true;
}
