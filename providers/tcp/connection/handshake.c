/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading during connection setup, on both sides. Control messages may arrive in any pieces. A message is decoded when
 * it is complete, and no byte behind it is read, since data messages may follow. connect.c, accept.c and auth.c handle
 * the messages; poller.c calls this file for every connection in a state before UP.
 */
#include "connection/handshake.h"

#include <errno.h>
#include <string.h>

#include "connection/auth.h"
#include "connection/connect.h"
#include "connection/connection.h"
#include "connection/probe.h"
#include "connection/secure.h"
#include "connection/version.h"

/*
 * The stream has ended during setup. A peer that refuses a proof says so first, so this one has refused nothing. To try the
 * next key after that would have a peer refuse it that has the first.
 */
static void handle_handshake_end(struct tcp_connection *connection, int error)
{
    if (tcp_connection_end_failed_stream(connection, error))
        return;
    if (connection->state == TCP_PROVING && tcp_connect_retry_encrypted(connection))
        return;
    if (connection->state == TCP_PROVING)
        tcp_connection_end(connection, ECONNRESET, false,
                           "the peer ended the connection while keys were compared, and has refused none");
    else
        tcp_connection_end(connection, error ? error : ECONNREFUSED, false,
                           "the peer ended the connection before it answered");
}

/* Read until `size` bytes are there. 1: complete; 0: not yet, or the connection is over. */
static int read_handshake_bytes(struct tcp_connection *connection, uint32_t size)
{
    struct tcp_meeting *meeting = connection->meeting;

    while (meeting->received < size) {
        struct iovec iov = {meeting->bytes + meeting->received, size - meeting->received};
        ssize_t result = connection->stream.ops->readv(&connection->stream, &iov, 1);

        if (result == -EAGAIN)
            return 0;
        if (result <= 0) {
            handle_handshake_end(connection, (int)-result);
            return 0;
        }
        meeting->received += (uint32_t)result;
    }
    return 1;
}

/*
 * Check the first byte early: a peer with another protocol may never send a whole control message. False: the connection
 * is over.
 */
static bool check_first_byte(struct tcp_connection *connection)
{
    const struct tcp_meeting *meeting = connection->meeting;

    if (connection->state == TCP_OVER || !meeting->received || meeting->bytes[0] == TCP_WIRE_VERSION)
        return true;
    tcp_connection_end_for_violation(
        connection, meeting->bytes[0] == TCP_TLS_HANDSHAKE
                        ? "the peer speaks TLS, and this side does not; set OFIPY_ENCRYPTION and "
                          "OFIPY_TLS_CERT alike on both sides, or have a tunnel end TLS before this port"
                        : "a control message of another version than 3");
    return false;
}

static void read_control_message(struct tcp_connection *connection)
{
    struct tcp_meeting *meeting = connection->meeting;
    struct tcp_control control;
    uint8_t private_data[TCP_PRIVATE_MAX];
    bool whole;

    if (connection->state == TCP_ACCEPTED && !tcp_encryption_accept(connection))
        return;
    whole = read_handshake_bytes(connection, TCP_CONTROL_SIZE);
    if (!check_first_byte(connection) || !whole)
        return;
    if (tcp_control_decode(meeting->bytes, &control) != 0) {
        tcp_connection_end_for_violation(connection, "a control message that cannot be");
        return;
    }
    if (!read_handshake_bytes(connection, TCP_CONTROL_SIZE + control.private_size))
        return;
    memcpy(private_data, meeting->bytes + TCP_CONTROL_SIZE, control.private_size);
    if (tcp_version_check(connection, &control, private_data) != 0)
        return;
    if (connection->state == TCP_REQUESTING)
        connection->endpoint->ops->answered(connection, &control, private_data);
    else
        connection->endpoint->ops->requested(connection, &control, private_data);
}

/* Read a hello and a proof, and nothing behind them. */
static void read_auth_messages(struct tcp_connection *connection)
{
    while (connection->state == TCP_PROVING) {
        struct tcp_meeting *meeting = connection->meeting;
        struct tcp_header header;

        if (!read_handshake_bytes(connection, TCP_HEADER_BASE))
            return;
        if (!tcp_header_decode_length(meeting->bytes)) {
            tcp_connection_end_for_violation(connection, "a header of impossible length");
            return;
        }
        if (!read_handshake_bytes(connection, (uint32_t)tcp_header_decode_length(meeting->bytes)))
            return;
        if (tcp_header_decode(meeting->bytes, connection->swapped, true, &header) || header.payload) {
            tcp_connection_end_for_violation(connection, "no proof");
            return;
        }
        meeting->received = 0;
        if (tcp_auth_handle_message(connection, &header)) {
            connection->proven = true;
            if (!connection->connector)
                tcp_source_clear(&connection->endpoint->poller->sources[meeting->source]);
            connection->endpoint->ops->proven(connection);
        }
    }
}

void tcp_handshake_progress(struct tcp_connection *connection)
{
    if (connection->state == TCP_CONNECTING)
        tcp_socket_connected(connection);
    else if (connection->state == TCP_PROBING)
        tcp_probe_progress(connection);
    if (connection->state == TCP_REQUESTING || connection->state == TCP_ACCEPTED)
        read_control_message(connection);
    if (connection->state == TCP_PROVING)
        read_auth_messages(connection);
    if (connection->proven && (connection->state == TCP_REQUESTING || connection->state == TCP_ACCEPTED))
        read_control_message(connection);
}
