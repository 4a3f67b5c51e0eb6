/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that we open: TCP's handshake, our request, the answer, and another try where the peer asks at the same time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp.h"

#define PAUSE_FIRST (10 * TCP_MILLISECOND)
#define PAUSE_LONGEST (500 * TCP_MILLISECOND)

static int open_socket(struct tcp_connection *connection, char *text, size_t text_size);

/* ------------------------------------------------------------------------------------------------------------ timers */

/* What may keep a peer from answering that TCP has reached, or not even that. */
static void excuse(const struct tcp_connection *connection, char *text, size_t text_size)
{
    int lacking = tcp_descriptors_lacking();

    if (lacking)
        tcp_descriptors_describe(lacking, text, text_size);
    else if (connection->state != TCP_CONNECTING)
        snprintf(
            text, text_size,
            "its host took the connection: its program may make no progress, have no descriptors left (ulimit -n), "
            "or speak another protocol");
}

static void give_up(struct tcp_connection *connection)
{
    char text[OFP_TEXT_MAX], address[TCP_ADDRESS_TEXT], why[OFP_TEXT_MAX / 2] = "";

    tcp_address_format(connection->peer->address, connection->peer->address_length, address, sizeof(address));
    if (connection->state == TCP_WAITING) {
        snprintf(text, sizeof(text), "%s refuses connections", address);
        tcp_connection_end(connection, ECONNREFUSED, false, text);
        return;
    }
    excuse(connection, why, sizeof(why));
    snprintf(text, sizeof(text), "%s did not answer within %g s (OFIPY_CONNECT_TIMEOUT)%s%s", address,
             (double)connection->endpoint->domain->connect_ns / (double)TCP_SECOND, why[0] ? "; " : "", why);
    tcp_connection_end(connection, ETIMEDOUT, false, text);
}

static void expired(struct ofp_timer *timer, uint64_t now)
{
    struct tcp_connection *connection = OFP_CONTAINER_OF(timer, struct tcp_meeting, timer)->connection;
    char text[OFP_TEXT_MAX] = "";
    int error;

    if (connection->state != TCP_WAITING || now >= connection->meeting->deadline) {
        give_up(connection);
        return;
    }
    /* The peer's own request has not come: ask again. */
    tcp_connection_state(connection, TCP_CONNECTING);
    error = open_socket(connection, text, sizeof(text));
    if (error)
        tcp_connection_end(connection, -error, false, text[0] ? text : NULL);
}

static void set_timer(struct tcp_connection *connection, uint64_t deadline)
{
    struct ofp_timer *timer = &connection->meeting->timer;

    timer->deadline = deadline;
    timer->expired = expired;
    tcp_core->timer_start(connection->endpoint->domain->base, timer);
}

void tcp_ask_until_deadline(struct tcp_connection *connection) { set_timer(connection, connection->meeting->deadline); }

/* ----------------------------------------------------------------------------------------------------------- asking */

int tcp_start_connect(const struct tcp_endpoint *endpoint, const void *address, socklen_t length, int *result)
{
    union tcp_address own = endpoint->address;
    int one = 1, error;
    int fd =
        tcp_descriptor_keep(socket(endpoint->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return -errno;
    tcp_socket_options(endpoint, fd, address, length);
    /* The peer knows us by this address. */
    tcp_address_set_port(&own, 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    if (bind(fd, &own.any, (socklen_t)tcp_address_length(&own)) != 0 ||
        (connect(fd, address, length) != 0 && errno != EINPROGRESS)) {
        error = -errno;
        tcp_descriptor_close(fd);
        return error;
    }
    *result = fd;
    return 0;
}

static const char *remedy(int error)
{
    return error == ECONNREFUSED ? "; start the peer first, or check its address" : "";
}

void tcp_describe_refusal(const struct ofp_peer *peer, int error, char *text, size_t text_size)
{
    char address[TCP_ADDRESS_TEXT] = "", why[OFP_TEXT_MAX / 2];

    tcp_address_format(peer->address, peer->address_length, address, sizeof(address));
    tcp_descriptors_describe(error, why, sizeof(why));
    snprintf(text, text_size, "cannot connect to %s: %s%s", address, why, remedy(error));
}

static int open_socket(struct tcp_connection *connection, char *text, size_t text_size)
{
    struct ofp_peer *peer = connection->peer;
    int error =
        tcp_start_connect(connection->endpoint, peer->address, (socklen_t)peer->address_length, &connection->stream.fd);

    if (!error)
        error = tcp_connection_watch(connection);
    if (error) {
        tcp_describe_refusal(connection->peer, -error, text, text_size);
        return error;
    }
    connection->meeting->have = 0;
    set_timer(connection, connection->meeting->deadline);
    return 0;
}

int tcp_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(peer->endpoint);
    struct tcp_connection *connection = tcp_connection_new(endpoint, -1, TCP_CONNECTING);
    int error;

    if (!connection)
        return -ENOMEM;
    connection->peer = peer;
    connection->connector = true;
    connection->meeting->deadline = tcp_core->now() + endpoint->domain->connect_ns;
    connection->meeting->pause = PAUSE_FIRST;
    tcp_peer_of(peer)->connection = connection;
    error = open_socket(connection, text, text_size);
    if (error)
        tcp_connection_discard(connection);
    return error;
}

static int send_request(struct tcp_connection *connection)
{
    struct tcp_rdm rdm = {.version = TCP_RDM_VERSION,
                          .port = tcp_address_port(&connection->endpoint->address),
                          .pid = (uint32_t)getpid()};

    if (connection->endpoint->connects)
        return tcp_msg_ask(connection);
    return tcp_send_rdm(connection, TCP_CONNREQ, &rdm);
}

void tcp_connected(struct tcp_connection *connection)
{
    char text[OFP_TEXT_MAX];
    socklen_t length = sizeof(int);
    int error = 0;

    getsockopt(connection->stream.fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (!error) {
        error = -send_request(connection);
        /* Another event than the end of TCP's handshake. */
        if (error == EAGAIN || error == ENOTCONN)
            return;
    }
    if (error) {
        tcp_describe_refusal(connection->peer, error, text, sizeof(text));
        tcp_connection_end(connection, error, false, text);
        return;
    }
    connection->meeting->have = 0;
    tcp_connection_state(connection, TCP_ASKING);
}

/* Refused: its own request is on the way, or it still believes in an earlier connection. */
static void wait_for_theirs(struct tcp_connection *connection)
{
    struct tcp_meeting *meeting = connection->meeting;
    uint64_t again = tcp_core->now() + meeting->pause;

    tcp_connection_hang_up(connection);
    connection->hangup = connection->blocked = false;
    tcp_connection_state(connection, TCP_WAITING);
    meeting->pause = meeting->pause * 2 < PAUSE_LONGEST ? meeting->pause * 2 : PAUSE_LONGEST;
    set_timer(connection, again < meeting->deadline ? again : meeting->deadline);
}

void tcp_begin_ours(struct tcp_connection *connection)
{
    tcp_meeting_free(connection);
    tcp_connection_state(connection, TCP_UP);
    connection->peer->incarnation = connection->pid;
    ofp_peer_up(connection->peer);
    tcp_connection_ready(connection);
}

void tcp_answered(struct tcp_connection *connection, const struct tcp_control *control, const uint8_t *private_data)
{
    struct tcp_rdm rdm;

    if (control->private_size == 1 && control->type == TCP_NACK) {
        tcp_key_disagreement(connection, ECONNREFUSED);
        return;
    }
    if (control->private_size != TCP_RDM_SIZE || control->type == TCP_CONNREQ) {
        tcp_connection_end(connection, ECONNREFUSED, false,
                           "the peer speaks another protocol over tcp, as ofi_rxm" TCP_RXM_REMEDY);
        return;
    }
    tcp_rdm_decode(private_data, &rdm);
    if (control->type == TCP_NACK) {
        wait_for_theirs(connection);
        return;
    }
    connection->swapped = control->swapped;
    connection->can_rendezvous = rdm.version == (TCP_RDM_VERSION | TCP_RDM_UNDERSTOOD) && !control->swapped;
    connection->extended = connection->endpoint->domain->extension && tcp_is_offer(control->offer);
    connection->pid = rdm.pid;
    if (connection->endpoint->domain->key_length) {
        tcp_address_parse(connection->peer->address, connection->peer->address_length, &connection->meeting->address);
        if (tcp_can_prove(control))
            tcp_prove_begin(connection);
        else
            tcp_key_disagreement(connection, EACCES);
        return;
    }
    if (connection->extended)
        tcp_extension_begin(connection);
    tcp_begin_ours(connection);
}
