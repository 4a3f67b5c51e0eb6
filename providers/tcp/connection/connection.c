/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a connection: creation, state transitions, end. handshake.c advances it to TCP_UP.
 *
 * A connection ends in one of two ways. tcp_connection_discard ends it at once; the memory is freed at the end of
 * progress, since callers up the stack may still use it. start_leaving writes the queue and a goodbye
 * first (LEAVING). The caller holds the domain's lock.
 */
#include "connection/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection/race.h"
#include "stream/inbound.h"
#include "stream/queue.h"
#include "stream/send.h"
#include "stream/socket.h"

/* A rejected peer may retry without end, so warnings are limited to one in this time. */
#define REFUSAL_PAUSE TCP_SECOND

#define EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

static const char *const state_names[] = {
    [TCP_CONNECTING] = "connecting", [TCP_REQUESTING] = "requesting", [TCP_ACCEPTED] = "accepted",
    [TCP_REQUESTED] = "requested",   [TCP_PROVING] = "proving",       [TCP_UP] = "up",
    [TCP_PROBING] = "probing",       [TCP_LEAVING] = "leaving",       [TCP_OVER] = "over",
};

/* Row: state before; column: state after. TCP_OVER is allowed from every state. */
static const bool allowed[TCP_OVER + 1][TCP_OVER + 1] = {
    [TCP_CONNECTING] = {[TCP_REQUESTING] = true},
    [TCP_REQUESTING] = {[TCP_UP] = true, [TCP_CONNECTING] = true, [TCP_PROVING] = true},
    [TCP_PROVING] = {[TCP_UP] = true, [TCP_REQUESTING] = true, [TCP_ACCEPTED] = true, [TCP_CONNECTING] = true},
    [TCP_ACCEPTED] = {[TCP_UP] = true, [TCP_PROVING] = true, [TCP_REQUESTED] = true},
    [TCP_REQUESTED] = {[TCP_UP] = true},
    [TCP_UP] = {[TCP_PROBING] = true, [TCP_LEAVING] = true},
};

void tcp_connection_set_state(struct tcp_connection *connection, enum tcp_state state)
{
    if (state != TCP_OVER && !allowed[connection->state][state])
        tcp_core->log(OFP_LOG_ERROR, TCP_NAME, "a connection: no way from %s to %s", state_names[connection->state],
                      state_names[state]);
    OFP_CHECK(state == TCP_OVER || allowed[connection->state][state]);
    connection->state = (uint8_t)state;
}

struct tcp_connection *tcp_connection_create(struct tcp_endpoint *endpoint, int fd, enum tcp_state state)
{
    struct tcp_connection *connection = calloc(1, sizeof(*connection));
    struct tcp_meeting *meeting = calloc(1, sizeof(*meeting));

    if (!connection || !meeting) {
        free(connection);
        free(meeting);
        if (fd >= 0)
            tcp_descriptor_close(fd);
        return NULL;
    }
    connection->stream = (struct tcp_stream){.ops = &tcp_plain_stream, .fd = fd};
    connection->endpoint = endpoint;
    connection->state = (uint8_t)state;
    connection->meeting = meeting;
    meeting->connection = connection;
    ofp_list_init(&connection->out);
    ofp_list_init(&connection->batched);
    ofp_list_init(&connection->acks);
    ofp_list_init(&connection->reads);
    ofp_list_append(&endpoint->connections, &connection->node);
    return connection;
}

int tcp_connection_watch(struct tcp_connection *connection)
{
    struct epoll_event event = {.events = EVENTS, .data.ptr = connection};

    return epoll_ctl(connection->endpoint->poller->epoll_fd, EPOLL_CTL_ADD, connection->stream.fd, &event) ? -errno : 0;
}

void tcp_connection_watch_anew(struct tcp_connection *connection)
{
    struct epoll_event event = {.events = EVENTS, .data.ptr = connection};

    epoll_ctl(connection->endpoint->poller->epoll_fd, EPOLL_CTL_MOD, connection->stream.fd, &event);
}

void tcp_connection_close_socket(struct tcp_connection *connection)
{
    /* A process that is being forked may have a copy of the socket, for which epoll would still report events. */
    epoll_ctl(connection->endpoint->poller->epoll_fd, EPOLL_CTL_DEL, connection->stream.fd, NULL);
    connection->stream.ops->close(&connection->stream);
}

void tcp_connection_get_own_address(const struct tcp_connection *connection, union tcp_address *address)
{
    if (!tcp_socket_get_address(connection->stream.fd, address))
        *address = connection->endpoint->address;
    tcp_address_set_port(address, tcp_address_get_port(&connection->endpoint->address));
}

bool tcp_connection_get_listening_address(const struct tcp_connection *connection, uint16_t port,
                                          union tcp_address *address)
{
    if (!port || !tcp_socket_get_peer_address(connection->stream.fd, address))
        return false;
    tcp_address_set_port(address, port);
    return true;
}

static void remove_linked_node(struct ofp_list *node)
{
    if (ofp_list_linked(node))
        ofp_list_remove(node);
}

/* Free the meeting, since the connection is up or over. */
static void free_meeting(struct tcp_connection *connection)
{
    if (!connection->meeting)
        return;
    tcp_core->timer_stop(connection->endpoint->domain->base, &connection->meeting->timer);
    remove_linked_node(&connection->meeting->handshake);
    if (connection->meeting->race)
        tcp_race_close(connection->meeting->race);
    free(connection->meeting->race);
    ofpi_keyring_release(connection->meeting->ring);
    free(connection->meeting);
    connection->meeting = NULL;
}

void tcp_connection_start_messages(struct tcp_connection *connection)
{
    free_meeting(connection);
    tcp_connection_set_state(connection, TCP_UP);
    /* The last bytes of the handshake may wait for the socket. */
    connection->blocked |= connection->stream.unsent;
    tcp_connection_schedule_read(connection);
}

/* ------------------------------------------------------------------------------------------------------------- ends */

static void detach_peer(struct tcp_connection *connection)
{
    struct tcp_peer *peer = connection->peer ? tcp_peer_of(connection->peer) : NULL;

    if (peer && peer->connection == connection)
        peer->connection = NULL;
    if (peer && peer->inbound == connection)
        peer->inbound = NULL;
    connection->peer = NULL;
}

/* Remove the references to operations. The core completes them when the peer is lost. */
static void discard_operations(struct tcp_connection *connection)
{
    ofp_list_init(&connection->batched);
    ofp_list_init(&connection->acks);
    ofp_list_init(&connection->reads);
    tcp_inbound_discard(connection);
    free(connection->rendezvous);
    connection->rendezvous = NULL;
    free(connection->stash);
    connection->stash = NULL;
    remove_linked_node(&connection->stall);
}

void tcp_connection_mark_known(struct tcp_connection *connection)
{
    OFP_CHECK(ofp_list_linked(&connection->unproven) && connection->endpoint->unproven_count > 0);
    ofp_list_remove(&connection->unproven);
    connection->endpoint->unproven_count--;
}

void tcp_connection_discard(struct tcp_connection *connection)
{
    struct tcp_endpoint *endpoint = connection->endpoint;

    if (connection->state == TCP_OVER)
        return;
    tcp_connection_set_state(connection, TCP_OVER);
    detach_peer(connection);
    discard_operations(connection);
    tcp_queue_discard(connection);
    free_meeting(connection);
    if (connection->stream.fd >= 0)
        tcp_connection_close_socket(connection);
    remove_linked_node(&connection->ready);
    remove_linked_node(&connection->dirty);
    remove_linked_node(&connection->creditor);
    if (ofp_list_linked(&connection->unproven))
        tcp_connection_mark_known(connection);
    if (endpoint->poller->hot == connection)
        endpoint->poller->hot = NULL;
    if (endpoint->poller->unwatched == connection)
        endpoint->poller->unwatched = NULL;
    if (endpoint->request == connection)
        endpoint->request = NULL;
    /* Free it later: callers up the stack may still use it. */
    ofp_list_remove(&connection->node);
    ofp_list_append(&endpoint->dead, &connection->node);
    OFP_CHECK(connection->out_bytes == 0 && connection->out_answers == 0);
}

void tcp_connections_free_dead(struct tcp_endpoint *endpoint)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&endpoint->dead))) {
        struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_connection, node);

        OFP_CHECK(connection->state == TCP_OVER && connection->stream.fd < 0);
        free(connection);
    }
}

void tcp_connection_end_as(struct tcp_connection *connection, const struct ofpi_meeting_end *end)
{
    const struct ofpi_meeting_ops *meeting = connection->endpoint->ops->meeting;
    struct ofp_peer *peer = connection->peer;

    if (peer && meeting) {
        ofpi_meeting_ended(meeting, peer, false, end);
        return;
    }
    tcp_connection_discard(connection);
    if (peer)
        ofpi_meeting_report_loss(peer, end);
}

void tcp_connection_end(struct tcp_connection *connection, int error, bool process_gone, const char *text)
{
    tcp_connection_end_as(connection,
                          &(struct ofpi_meeting_end){.error = error, .process_gone = process_gone, .text = text});
}

static void describe_other_end(const struct tcp_connection *connection, char text[TCP_ADDRESS_TEXT])
{
    union tcp_address theirs;

    strcpy(text, "somebody");
    if (connection->peer)
        tcp_address_format(connection->peer->address, connection->peer->address_length, text, TCP_ADDRESS_TEXT);
    else if (tcp_socket_get_peer_address(connection->stream.fd, &theirs))
        tcp_address_describe(&theirs, text);
}

void tcp_connection_end_for_violation(struct tcp_connection *connection, const char *what)
{
    char text[OFP_TEXT_MAX], address[TCP_ADDRESS_TEXT];

    describe_other_end(connection, address);
    snprintf(text, sizeof(text), "%s broke the protocol: %s", address, what);
    tcp_core->log(OFP_LOG_WARNING, TCP_NAME, "endpoint %u: %s", tcp_endpoint_id_of(connection->endpoint), text);
    tcp_connection_end(connection, EPROTO, false, text);
}

void tcp_refusal_log(const struct tcp_connection *connection, const char *why)
{
    struct tcp_endpoint *endpoint = connection->endpoint;
    char address[TCP_ADDRESS_TEXT];
    uint64_t now = tcp_core->now();
    bool often = endpoint->refused_at && now - endpoint->refused_at < REFUSAL_PAUSE;

    describe_other_end(connection, address);
    if (!often)
        endpoint->refused_at = now;
    tcp_core->log(often ? OFP_LOG_DEBUG : OFP_LOG_WARNING, TCP_NAME, "endpoint %u refuses %s: %s",
                  tcp_endpoint_id_of(endpoint), address, why);
}

/* --------------------------------------------------------------------------------------------------------- farewells */

static void leave_timer_expired(struct ofp_timer *timer, uint64_t now)
{
    struct tcp_meeting *meeting = OFP_CONTAINER_OF(timer, struct tcp_meeting, timer);
    struct tcp_connection *connection = meeting->connection;

    if (now >= meeting->deadline || tcp_connection_drain(connection)) {
        tcp_connection_discard(connection);
        return;
    }
    timer->deadline = now + 10 * TCP_MILLISECOND;
    tcp_core->timer_start(connection->endpoint->domain->base, timer);
}

/* Write the queue, then close. The core has released the peer. */
static void start_leaving(struct tcp_connection *connection)
{
    struct tcp_endpoint *endpoint = connection->endpoint;

    /* Write batched messages now. */
    if (connection->state == TCP_UP && !connection->blocked)
        tcp_queue_flush(connection);
    if (connection->state != TCP_UP || connection->shut || connection->failure ||
        !tcp_queue_is_self_contained(connection)) {
        tcp_connection_discard(connection);
        return;
    }
    connection->meeting = calloc(1, sizeof(*connection->meeting));
    if (!connection->meeting) {
        tcp_connection_discard(connection);
        return;
    }
    tcp_goodbye_send(connection, false);
    tcp_connection_set_state(connection, TCP_LEAVING);
    detach_peer(connection);
    discard_operations(connection);
    remove_linked_node(&connection->creditor);
    connection->stalled = false;
    connection->meeting->connection = connection;
    connection->meeting->deadline = tcp_core->now() + endpoint->domain->connect_ns;
    connection->meeting->timer =
        (struct ofp_timer){.deadline = tcp_core->now() + TCP_MILLISECOND, .expired = leave_timer_expired};
    tcp_core->timer_start(endpoint->domain->base, &connection->meeting->timer);
    tcp_connection_drain(connection);
    tcp_connection_schedule_read(connection);
}

bool tcp_connection_drain(struct tcp_connection *connection)
{
    if (connection->state == TCP_OVER || connection->failure)
        return true;
    if (!connection->blocked)
        tcp_queue_flush(connection);
    if ((!ofp_list_empty(&connection->out) || connection->stream.unsent) && !connection->hangup)
        return false;
    if (!connection->shut) {
        connection->shut = true;
        connection->stream.ops->shutdown(&connection->stream);
    }
    return connection->hangup || connection->stream.ops->pending(&connection->stream) == 0;
}

void tcp_peer_disconnect(struct ofp_peer *peer)
{
    struct tcp_peer *self = tcp_peer_of(peer);

    tcp_endpoint_of(peer->endpoint)->shutting_down = NULL;
    if (self->inbound)
        tcp_connection_discard(self->inbound);
    if (self->connection)
        start_leaving(self->connection);
    self->met.state = OFPI_MEET_IDLE;
}
