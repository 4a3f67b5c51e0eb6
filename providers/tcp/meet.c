/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How connections come up: asking, answering, and which of two survives when both sides ask at once. A request is read in
 * whatever pieces it comes, and nothing of it is believed before it is whole; whoever takes too long is dropped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp.h"

#define PAUSE_FIRST (10 * TCP_MILLISECOND)
#define PAUSE_LONGEST (500 * TCP_MILLISECOND)
#define KNOCK_PATIENCE TCP_SECOND
/* Length of the private data that the other protocol over tcp sends. */
#define RXM_PRIVATE_SIZE 24

static int open_socket(struct tcp_connection *connection, char *text, size_t text_size);

/* ------------------------------------------------------------------------------------------------------------ timers */

static void give_up(struct tcp_connection *connection)
{
    char text[OFP_TEXT_MAX], address[TCP_ADDRESS_TEXT];

    if (connection->state == TCP_KNOCKING || !connection->peer) {
        tcp_connection_end(connection, ECONNRESET, false, NULL);
        return;
    }
    tcp_address_format(connection->peer->address, connection->peer->address_length, address, sizeof(address));
    if (connection->state == TCP_WAITING) {
        snprintf(text, sizeof(text), "%s refuses connections", address);
        tcp_connection_end(connection, ECONNREFUSED, false, text);
        return;
    }
    snprintf(text, sizeof(text), "%s did not answer within %g s (OFIPY_CONNECT_TIMEOUT)", address,
             (double)connection->endpoint->domain->connect_ns / (double)TCP_SECOND);
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

/* ----------------------------------------------------------------------------------------------------------- asking */

static int start_connect(const struct tcp_endpoint *endpoint, const void *address, socklen_t length, int *result)
{
    union tcp_address own = endpoint->address;
    int one = 1, error;
    int fd = socket(endpoint->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    tcp_socket_options(endpoint, fd);
    /* The peer knows us by this address. */
    tcp_address_set_port(&own, 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    if (bind(fd, &own.any, (socklen_t)tcp_address_length(&own)) != 0 ||
        (connect(fd, address, length) != 0 && errno != EINPROGRESS)) {
        error = -errno;
        close(fd);
        return error;
    }
    *result = fd;
    return 0;
}

static void describe(const struct tcp_connection *connection, int error, char *text, size_t text_size)
{
    char address[TCP_ADDRESS_TEXT] = "";
    const struct ofp_peer *peer = connection->peer;

    tcp_address_format(peer->address, peer->address_length, address, sizeof(address));
    snprintf(text, text_size, "cannot connect to %s: %s", address, strerror(error));
}

static int open_socket(struct tcp_connection *connection, char *text, size_t text_size)
{
    struct ofp_peer *peer = connection->peer;
    int error =
        start_connect(connection->endpoint, peer->address, (socklen_t)peer->address_length, &connection->stream.fd);

    if (!error)
        error = tcp_connection_watch(connection);
    if (error) {
        describe(connection, -error, text, text_size);
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

/* The control message in one write: a stock peer that finds half of it gives up. */
static int send_control(struct tcp_connection *connection, enum tcp_control_type type, const struct tcp_rdm *rdm)
{
    uint8_t bytes[TCP_CONTROL_SIZE + TCP_RDM_SIZE];
    struct tcp_control control = {.type = (uint8_t)type, .private_size = TCP_RDM_SIZE};
    struct iovec iov = {bytes, sizeof(bytes)};
    ssize_t result;

    /* Stock peers ignore it in a request; in an answer it is only for those that offered it. */
    if (type == TCP_CONNREQ ? connection->endpoint->domain->extension : connection->extended)
        control.offer = TCP_OFFER_MAGIC | TCP_EXTENSION_VERSION;
    tcp_control_encode(&control, bytes);
    tcp_rdm_encode(rdm, bytes + TCP_CONTROL_SIZE);
    result = connection->stream.ops->writev(&connection->stream, &iov, 1);
    if (result == (ssize_t)sizeof(bytes))
        return 0;
    return result < 0 ? (int)result : -EIO;
}

static void connected(struct tcp_connection *connection)
{
    struct tcp_rdm rdm = {.version = TCP_RDM_VERSION,
                          .port = tcp_address_port(&connection->endpoint->address),
                          .pid = (uint32_t)getpid()};
    char text[OFP_TEXT_MAX];
    socklen_t length = sizeof(int);
    int error = 0;

    getsockopt(connection->stream.fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (!error) {
        error = -send_control(connection, TCP_CONNREQ, &rdm);
        /* Another event than the end of TCP's handshake. */
        if (error == EAGAIN || error == ENOTCONN)
            return;
    }
    if (error) {
        describe(connection, error, text, sizeof(text));
        tcp_connection_end(connection, error, false, text);
        return;
    }
    tcp_connection_state(connection, TCP_ASKING);
}

/* Refused: its own request is on the way, or it still believes in an earlier connection. */
static void wait_for_theirs(struct tcp_connection *connection)
{
    struct tcp_meeting *meeting = connection->meeting;
    uint64_t again = tcp_core->now() + meeting->pause;

    connection->stream.ops->close(&connection->stream);
    connection->hangup = connection->blocked = false;
    tcp_connection_state(connection, TCP_WAITING);
    meeting->pause = meeting->pause * 2 < PAUSE_LONGEST ? meeting->pause * 2 : PAUSE_LONGEST;
    set_timer(connection, again < meeting->deadline ? again : meeting->deadline);
}

static void answered(struct tcp_connection *connection, const struct tcp_control *control, const uint8_t *private_data)
{
    struct tcp_rdm rdm;

    if (control->private_size != TCP_RDM_SIZE || control->type == TCP_CONNREQ) {
        tcp_connection_end(connection, ECONNREFUSED, false,
                           "the peer speaks another protocol over tcp, as ofi_rxm; use FI_PROVIDER=net there, or "
                           "libfabric 1.18 or newer");
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
    tcp_meeting_free(connection);
    tcp_connection_state(connection, TCP_UP);
    if (connection->extended)
        tcp_extension_begin(connection);
    connection->peer->incarnation = rdm.pid;
    tcp_core->peer_up(connection->peer);
    tcp_connection_ready(connection);
}

/* --------------------------------------------------------------------------------------------------------- answering */

static void refuse(struct tcp_connection *connection, const struct tcp_rdm *rdm)
{
    send_control(connection, TCP_NACK, rdm);
    tcp_connection_discard(connection);
}

static void accept_request(struct tcp_connection *connection, struct ofp_peer *peer, const struct tcp_control *control,
                           const struct tcp_rdm *rdm)
{
    struct tcp_peer *self = tcp_peer_of(peer);
    struct tcp_rdm answer = {.port = rdm->port, .pid = (uint32_t)getpid()};

    /* A stock sender of the other byte order would write wrong lengths in a rendezvous. */
    if (rdm->version && !control->swapped)
        answer.version = TCP_RDM_VERSION | TCP_RDM_UNDERSTOOD;
    connection->extended = connection->endpoint->domain->extension && tcp_is_offer(control->offer);
    if (send_control(connection, TCP_CONNRESP, &answer) != 0) {
        tcp_connection_discard(connection);
        return;
    }
    connection->swapped = control->swapped;
    connection->can_rendezvous = answer.version;
    connection->pid = rdm->pid;
    ofp_list_remove(&connection->unproven);
    connection->endpoint->unproven_count--;
    tcp_meeting_free(connection);
    tcp_connection_state(connection, TCP_UP);
    connection->peer = peer;
    tcp_connection_ready(connection);
    if (connection->extended)
        tcp_extension_begin(connection);
    /* Our own other end: that one sends. */
    if (self->connection) {
        self->inbound = connection;
        return;
    }
    if (peer->state == OFP_PEER_UNUSED || peer->state == OFP_PEER_LOST)
        tcp_core->peer_connecting(peer);
    self->connection = connection;
    peer->incarnation = rdm->pid;
    tcp_core->peer_up(peer);
}

/* The connection to that peer that there is already gives way, or (false) the new one does. */
static bool make_way(struct ofp_peer *peer, const struct tcp_rdm *rdm, int theirs_to_ours)
{
    struct tcp_connection *old = tcp_peer_of(peer)->connection;
    bool same_process;

    if (!old)
        return true;
    switch (old->state) {
    case TCP_CONNECTING:
    case TCP_ASKING:
        /* Both ask: the connection that the larger address opened stays. */
        if (theirs_to_ours < 0)
            return false;
        tcp_connection_discard(old);
        return true;
    case TCP_WAITING:
        tcp_connection_discard(old);
        return true;
    default:
        same_process = old->pid == rdm->pid;
        /* It asked before it had our answer. */
        if (same_process && old->connector && old->state == TCP_UP)
            return false;
        tcp_connection_end(old, same_process ? ECONNRESET : OFP_EPEERLOST, !same_process,
                           same_process ? "the peer opened a new connection"
                                        : "another process has taken the peer's address");
        return true;
    }
}

static bool sender_address(const struct tcp_connection *connection, const struct tcp_rdm *rdm,
                           union tcp_address *address)
{
    socklen_t length = sizeof(*address);

    memset(address, 0, sizeof(*address));
    if (getpeername(connection->stream.fd, &address->any, &length) != 0 || !rdm->port)
        return false;
    tcp_address_set_port(address, rdm->port);
    tcp_address_clean(address);
    return true;
}

static void requested(struct tcp_connection *connection, const struct tcp_control *control, const uint8_t *private_data)
{
    struct tcp_endpoint *endpoint = connection->endpoint;
    union tcp_address address;
    struct tcp_rdm rdm;
    struct ofp_peer *peer;
    int order;

    if (control->type != TCP_CONNREQ || control->private_size != TCP_RDM_SIZE) {
        tcp_connection_violation(connection,
                                 control->private_size == RXM_PRIVATE_SIZE
                                     ? "the peer speaks ofi_rxm; use FI_PROVIDER=net there, or libfabric 1.18 or newer"
                                     : "not the request of a reliable datagram endpoint");
        return;
    }
    tcp_rdm_decode(private_data, &rdm);
    if (!sender_address(connection, &rdm, &address)) {
        tcp_connection_discard(connection);
        return;
    }
    peer = tcp_core->peer_by_address(endpoint->base, &address, tcp_address_length(&address));
    if (!peer) {
        tcp_connection_discard(connection);
        return;
    }
    order = tcp_address_compare(&address, &endpoint->address);
    if (order != 0 && !make_way(peer, &rdm, order))
        refuse(connection, &rdm);
    else if (order == 0 && (!tcp_peer_of(peer)->connection || tcp_peer_of(peer)->inbound))
        /* Somebody pretends to be us. */
        tcp_connection_discard(connection);
    else
        accept_request(connection, peer, control, &rdm);
}

/* ---------------------------------------------------------------------------------------------------------- knocking */

void tcp_knock(struct tcp_connection *connection)
{
    struct ofp_peer *peer = connection->peer;
    int error;

    connection->stream.ops->close(&connection->stream);
    connection->meeting = calloc(1, sizeof(*connection->meeting));
    if (!connection->meeting) {
        tcp_connection_end(connection, ECONNRESET, false, NULL);
        return;
    }
    connection->meeting->connection = connection;
    tcp_connection_state(connection, TCP_KNOCKING);
    if (ofp_list_linked(&connection->ready))
        ofp_list_remove(&connection->ready);
    error = start_connect(connection->endpoint, peer->address, (socklen_t)peer->address_length, &connection->stream.fd);
    if (!error)
        error = tcp_connection_watch(connection);
    if (error)
        tcp_connection_end(connection, error == -ECONNREFUSED ? OFP_EPEERLOST : ECONNRESET, error == -ECONNREFUSED,
                           "the connection ended");
    else
        set_timer(connection, tcp_core->now() + KNOCK_PATIENCE);
}

static void heard(struct tcp_connection *connection)
{
    socklen_t length = sizeof(int);
    struct sockaddr_storage peer;
    socklen_t peer_length = sizeof(peer);
    int error = 0;

    getsockopt(connection->stream.fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (!error && getpeername(connection->stream.fd, (struct sockaddr *)&peer, &peer_length) != 0)
        return;
    tcp_connection_end(connection, error == ECONNREFUSED ? OFP_EPEERLOST : ECONNRESET, error == ECONNREFUSED,
                       error == ECONNREFUSED ? "the peer is gone" : "the connection ended");
}

/* --------------------------------------------------------------------------------------------------------- reading */

/* Up to `size` bytes of the control message. 1: they are here; 0: not yet; the connection may be over. */
static int read_up_to(struct tcp_connection *connection, uint32_t size)
{
    struct tcp_meeting *meeting = connection->meeting;

    while (meeting->have < size) {
        struct iovec iov = {meeting->bytes + meeting->have, size - meeting->have};
        ssize_t result = connection->stream.ops->readv(&connection->stream, &iov, 1);

        if (result == -EAGAIN)
            return 0;
        if (result <= 0) {
            tcp_connection_end(connection, result ? (int)-result : ECONNREFUSED, false,
                               "the peer ended the connection before it answered");
            return 0;
        }
        meeting->have += (uint32_t)result;
    }
    return 1;
}

static void read_control(struct tcp_connection *connection)
{
    struct tcp_meeting *meeting = connection->meeting;
    struct tcp_control control;
    uint8_t private_data[TCP_PRIVATE_MAX];
    int error;

    if (!read_up_to(connection, TCP_CONTROL_SIZE))
        return;
    error = tcp_control_decode(meeting->bytes, &control);
    if (error) {
        tcp_connection_violation(connection, error == -EPROTONOSUPPORT ? "a control message of another version than 3"
                                                                       : "a control message that cannot be");
        return;
    }
    if (!read_up_to(connection, TCP_CONTROL_SIZE + control.private_size))
        return;
    memcpy(private_data, meeting->bytes + TCP_CONTROL_SIZE, control.private_size);
    if (connection->state == TCP_ASKING)
        answered(connection, &control, private_data);
    else
        requested(connection, &control, private_data);
}

void tcp_meet(struct tcp_connection *connection)
{
    if (connection->state == TCP_CONNECTING)
        connected(connection);
    else if (connection->state == TCP_KNOCKING)
        heard(connection);
    if (connection->state == TCP_ASKING || connection->state == TCP_ACCEPTED)
        read_control(connection);
}
