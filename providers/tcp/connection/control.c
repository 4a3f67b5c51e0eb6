/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending of control messages: requests, answers, rejections. */
#include "connection/control.h"

#include <errno.h>
#include <string.h>

#include "connection/connection.h"
#include "connection/secure.h"

#define TCP_EARLIER_VERSIONS (UINT64_C(0) + TCP_EXTENSION_VERSION - TCP_EXTENSION_OLDEST)

/* MSG endpoints need no identity: one connection is one endpoint. */
static bool can_send_identity(const struct tcp_endpoint *endpoint)
{
    return endpoint->base && !endpoint->connects && endpoint->domain->extension;
}

int tcp_control_send(struct tcp_connection *connection, enum tcp_control_type type, const void *private_data,
                     size_t length)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_PRIVATE_MAX];
    struct tcp_control control = {.type = (uint8_t)type, .private_size = (uint16_t)length};
    struct iovec iov = {bytes, TCP_CONTROL_SIZE + length};
    ssize_t result;

    if (length > TCP_PRIVATE_MAX)
        return -EINVAL;
    /* libfabric ignores the magic in a request. An answer has it only if the request had it. */
    if (type == TCP_CONNREQ ? connection->endpoint->domain->extension : connection->extended) {
        control.magic = TCP_EXTENSION_MAGIC | TCP_EXTENSION_VERSION;
        control.capabilities = TCP_CAPABILITY_INTERNAL | TCP_EARLIER_VERSIONS << TCP_CAPABILITY_EARLIER_SHIFT;
        if (can_send_identity(connection->endpoint))
            control.capabilities |= TCP_CAPABILITY_IDENTITY;
        if (connection->meeting->key_length)
            control.capabilities |= TCP_CAPABILITY_AUTHENTICATION;
        if (tcp_encryption_is_host_bound(connection))
            control.capabilities |= TCP_CAPABILITY_HOST;
    }
    tcp_control_encode(&control, bytes);
    if (length)
        memcpy(bytes + TCP_CONTROL_SIZE, private_data, length);
    result = connection->stream.ops->writev(&connection->stream, &iov, 1);
    if (result == (ssize_t)iov.iov_len)
        return 0;
    return result < 0 ? (int)result : -EIO;
}

size_t tcp_rdm_compute_size(const struct tcp_connection *connection, enum tcp_control_type type)
{
    return connection->meeting->identified && type != TCP_NACK ? TCP_RDM_IDENTIFIED_SIZE : TCP_RDM_SIZE;
}

int tcp_rdm_send(struct tcp_connection *connection, enum tcp_control_type type, const struct tcp_rdm *rdm)
{
    uint8_t bytes[TCP_RDM_IDENTIFIED_SIZE];
    size_t length = tcp_rdm_compute_size(connection, type);

    tcp_rdm_encode(rdm, bytes);
    if (length == TCP_RDM_IDENTIFIED_SIZE)
        memcpy(bytes + TCP_RDM_SIZE, connection->endpoint->base->identity, OFP_IDENTITY_SIZE);
    return tcp_control_send(connection, type, bytes, length);
}

void tcp_request_reject(struct tcp_connection *connection, const void *data, size_t length)
{
    tcp_control_send(connection, TCP_NACK, data, length);
    connection->stream.ops->shutdown(&connection->stream);
    tcp_connection_discard(connection);
}

void tcp_request_reject_unencrypted(struct tcp_connection *connection, int refusal)
{
    uint8_t reason = (uint8_t)refusal;

    tcp_encryption_warn(connection, refusal);
    tcp_request_reject(connection, &reason, sizeof(reason));
}

bool tcp_control_can_prove(const struct tcp_control *control)
{
    return tcp_magic_is_extension(control->magic) && control->capabilities & TCP_CAPABILITY_AUTHENTICATION;
}

bool tcp_control_can_identify(const struct tcp_connection *connection, const struct tcp_control *control)
{
    return can_send_identity(connection->endpoint) && tcp_magic_is_extension(control->magic) &&
           control->capabilities & TCP_CAPABILITY_IDENTITY;
}

void tcp_identity_store(struct tcp_connection *connection, const uint8_t *identity)
{
    memcpy(connection->meeting->identity, identity, OFP_IDENTITY_SIZE);
    memcpy(&connection->incarnation, identity, sizeof(connection->incarnation));
}

void tcp_extension_accept(struct tcp_connection *connection, const struct tcp_control *control)
{
    connection->meeting->their_version = tcp_magic_get_version(control->magic);
    connection->extended = connection->endpoint->domain->extension && tcp_magic_is_extension(control->magic);
    connection->knows_internal = connection->extended && control->capabilities & TCP_CAPABILITY_INTERNAL;
}
