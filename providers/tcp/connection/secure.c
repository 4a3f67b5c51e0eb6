/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which connections are encrypted. The rule is local (OFIPY_ENCRYPTION) and never negotiated, so nobody on the path can
 * talk two sides out of it: the connector encrypts from the first byte or not at all, and the acceptor refuses what its
 * own rule does not allow. The first byte of a connection tells TLS from the plain protocol, so both use one port.
 */
#include "connection/secure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "connection/connection.h"
#include "stream/tls.h"

static bool parse_encryption(const char *text, bool *required)
{
    *required = strcmp(text, "required") == 0;
    return *required || strcmp(text, "off") == 0;
}

int tcp_encryption_open(struct tcp_domain *domain, char *text, size_t text_size)
{
    const char *configured = tcp_core->param_string("ENCRYPTION");

    if (!parse_encryption(configured, &domain->encrypts)) {
        snprintf(text, text_size, "OFIPY_ENCRYPTION=%s: off or required is meant", configured);
        return -EINVAL;
    }
    if (!domain->encrypts)
        return 0;
    if (!domain->key.length) {
        snprintf(text, text_size,
                 "OFIPY_ENCRYPTION=required needs a key: make one (ofipy key new job.key), copy it to the "
                 "peers, and set OFIPY_AUTH_KEY_FILE to it on both sides");
        return -EINVAL;
    }
    return tcp_tls_context_create(&domain->tls, domain->key.bytes, domain->key.length, text, text_size);
}

int tcp_encryption_start(struct tcp_connection *connection)
{
    struct tcp_domain *domain = connection->endpoint->domain;

    if (!domain->encrypts || tcp_stream_is_encrypted(&connection->stream))
        return 0;
    return tcp_tls_start(&connection->stream, domain->tls, true);
}

int tcp_encryption_accept(struct tcp_connection *connection)
{
    struct tcp_domain *domain = connection->endpoint->domain;
    uint8_t first;

    if (!domain->encrypts || tcp_stream_is_encrypted(&connection->stream) || connection->meeting->received ||
        recv(connection->stream.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1 || first != TCP_TLS_HANDSHAKE)
        return 0;
    return tcp_tls_start(&connection->stream, domain->tls, false);
}

bool tcp_encryption_is_missing(const struct tcp_connection *connection)
{
    return connection->endpoint->domain->encrypts && !tcp_stream_is_encrypted(&connection->stream);
}

void tcp_encryption_warn(const struct tcp_connection *connection)
{
    tcp_refusal_log(connection,
                    "its connection is not encrypted; set OFIPY_ENCRYPTION=required there as well, with the "
                    "same OFIPY_AUTH_KEY_FILE");
}

void tcp_connection_end_for_encryption(struct tcp_connection *connection)
{
    tcp_connection_end(
        connection, EACCES, false,
        "the peer accepts encrypted connections alone; set OFIPY_ENCRYPTION=required here as well, with the "
        "same OFIPY_AUTH_KEY_FILE");
}

bool tcp_connection_end_failed_stream(struct tcp_connection *connection, int error)
{
    const char *failure;
    char text[OFP_TEXT_MAX];

    tcp_tls_fail(&connection->stream, error);
    failure = tcp_tls_get_failure(&connection->stream);
    if (!failure)
        return false;
    snprintf(text, sizeof(text), "%s", failure);
    if (!connection->peer)
        tcp_refusal_log(connection, text);
    tcp_connection_end(connection, EACCES, false, text);
    return true;
}
