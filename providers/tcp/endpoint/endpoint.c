/* SPDX-License-Identifier: BSD-3-Clause */
/* The table entries that RDM and MSG endpoints share: address, progress, arming, drain and close. */
#include "endpoint/endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "address/interface.h"
#include "connection/connection.h"
#include "connection/credit.h"
#include "endpoint/common.h"
#include "connection/listen.h"
#include "endpoint/msg.h"
#include "connection/poller.h"
#include "stream/queue.h"
#include "message/receive.h"
#include "stream/send.h"

#define STALL_PAUSE_LONGEST (8 * TCP_MILLISECOND)

int tcp_endpoint_get_address(struct ofp_endpoint *base, void *address, size_t *length)
{
    const struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    size_t space = *length;

    *length = tcp_address_get_length(&endpoint->address);
    if (space < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &endpoint->address, *length);
    return 0;
}

int tcp_endpoint_get_other_address(struct ofp_endpoint *base, uint32_t number, void *address, size_t *length)
{
    const struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    union tcp_address all[TCP_INTERFACES_MAX], any = {.any.sa_family = endpoint->anywhere};
    size_t space = *length;
    int count = 0;

    if (endpoint->anywhere && !base->connects_only)
        count = tcp_addresses_of(&any, all);
    for (int i = 0; i < count; i++) {
        tcp_address_set_port(&all[i], tcp_address_get_port(&endpoint->address));
        if (tcp_address_has_same_ip(&all[i], &endpoint->address) || number--)
            continue;
        *length = tcp_address_get_length(&all[i]);
        if (space < *length)
            return -OFP_ETOOSMALL;
        memcpy(address, &all[i], *length);
        return 0;
    }
    return -ENOENT;
}

/* --------------------------------------------------------------------------------------------------------- progress */

static int read_connection(struct tcp_connection *connection)
{
    if (TCP_UNLIKELY(connection->failure)) {
        tcp_connection_end(connection, connection->failure, false, NULL);
        return 1;
    }
    if (connection->state != TCP_UP && connection->state != TCP_LEAVING) {
        ofp_list_remove(&connection->ready);
        return 0;
    }
    /* The connection is scheduled again when its queue is shorter, or the core has space. */
    if (!tcp_connection_can_read(connection)) {
        if (ofp_list_linked(&connection->ready))
            ofp_list_remove(&connection->ready);
        if (!connection->stalled && !ofp_list_linked(&connection->stall))
            ofp_list_append(&connection->endpoint->stalled, &connection->stall);
        return 0;
    }
    return tcp_connection_receive(connection);
}

static int read_ready_connections(struct tcp_endpoint *endpoint)
{
    struct ofp_list turn, *node;
    int events = 0;

    if (ofp_list_empty(&endpoint->ready))
        return 0;
    /* Read each connection once. Connections that become ready meanwhile have their turn in the next call. */
    turn = endpoint->ready;
    turn.next->previous = turn.previous->next = &turn;
    ofp_list_init(&endpoint->ready);
    while (!ofp_list_empty(&turn)) {
        node = turn.next;
        ofp_list_remove(node);
        ofp_list_append(&endpoint->ready, node);
        events += read_connection(OFP_CONTAINER_OF(node, struct tcp_connection, ready));
    }
    return events;
}

static int retry_stalled_connections(struct tcp_endpoint *endpoint)
{
    struct ofp_list *node, *following;
    int events = 0;

    OFP_LIST_EACH(node, following, &endpoint->stalled) {
        struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_connection, stall);

        if (connection->stalled && tcp_stall_is_expired(connection)) {
            tcp_stall_end(connection);
            /* The list may have lost more connections, so stop walking it. */
            return events + 1;
        }
        if (connection->stalled) {
            events += tcp_stall_retry(connection);
        } else if (tcp_connection_can_read(connection)) {
            ofp_list_remove(node);
            tcp_connection_schedule_read(connection);
            events++;
        }
    }
    if (events)
        endpoint->stall_pause = TCP_STALL_PAUSE;
    return events;
}

int tcp_endpoint_progress(struct ofp_endpoint *base)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    struct tcp_poller *poller = endpoint->poller;
    struct tcp_connection *hot = poller->hot;
    int events = 0;

    endpoint->rounds++;
    if (!ofp_list_empty(&endpoint->dirty))
        tcp_endpoint_flush(base);
    if (hot && hot->endpoint == endpoint && hot->state == TCP_UP) {
        tcp_poller_unwatch(poller, hot);
        if (!hot->stalled)
            events = tcp_connection_receive(hot);
    }
    if (tcp_poller_is_polled_by(endpoint))
        events += tcp_poller_poll_if_due(poller);
    events += read_ready_connections(endpoint);
    if (TCP_UNLIKELY(!ofp_list_empty(&endpoint->stalled)))
        events += retry_stalled_connections(endpoint);
    if (TCP_UNLIKELY(!ofp_list_empty(&endpoint->creditors)))
        events += tcp_credit_grant_deferred(endpoint);
    if (!ofp_list_empty(&endpoint->dirty))
        tcp_endpoint_flush(base);
    if (TCP_UNLIKELY(endpoint->shutting_down != NULL))
        tcp_msg_end_shutdown(endpoint);
    if (TCP_UNLIKELY(!ofp_list_empty(&endpoint->dead)))
        tcp_connections_free_dead(endpoint);
    return events;
}

bool tcp_endpoint_arm(struct ofp_endpoint *base)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);

    tcp_endpoint_flush(base);
    tcp_poller_watch_again(endpoint->poller);
    if ((tcp_poller_is_polled_by(endpoint) && tcp_poller_poll(endpoint->poller)) || !ofp_list_empty(&endpoint->ready) ||
        tcp_msg_can_shut_down(endpoint))
        return false;
    /* The reactor watches only for sleeping threads. Otherwise every packet would wake it, at the sender's cost. */
    if (tcp_poller_arm(endpoint) != 0)
        return false;
    /* Another thread may post the receive that a stalled connection waits for, so retry after a pause. */
    if (!ofp_list_empty(&endpoint->stalled)) {
        endpoint->stall_timer.deadline = tcp_core->now() + endpoint->stall_pause;
        if (endpoint->stall_pause < STALL_PAUSE_LONGEST)
            endpoint->stall_pause *= 2;
        tcp_core->timer_start(base->domain, &endpoint->stall_timer);
    }
    return true;
}

void tcp_endpoint_disarm(struct ofp_endpoint *base) { tcp_poller_disarm(tcp_endpoint_of(base)); }

/* ---------------------------------------------------------------------------------------------------------- closing */

int tcp_endpoint_drain(struct ofp_endpoint *base)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    struct ofp_list *node, *following;
    bool left = true;

    /* Stop listening, and say goodbye on every connection. */
    if (!endpoint->closing) {
        tcp_listener_close(endpoint);
        OFP_LIST_EACH(node, following, &endpoint->connections) {
            struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_connection, node);

            if (connection->state == TCP_UP)
                tcp_goodbye_send(connection, true);
        }
    }
    endpoint->closing = true;
    OFP_LIST_EACH(node, following, &endpoint->connections) {
        struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_connection, node);

        if (connection->state != TCP_UP && connection->state != TCP_LEAVING)
            continue;
        left &= tcp_connection_drain(connection);
    }
    return left ? 0 : -EAGAIN;
}

uint64_t tcp_peer_count_unsent(const struct ofp_peer *peer)
{
    const struct tcp_connection *connection = tcp_peer_of(peer)->connection;
    uint64_t count = connection ? tcp_queue_count_completed(connection) : 0;

    /* The kernel's bytes belong to an unknown number of operations, at least to one. */
    if (connection && ofp_list_empty(&connection->out) && connection->state == TCP_UP && !connection->hangup &&
        connection->stream.ops->pending(&connection->stream) != 0)
        count++;
    return count;
}

void tcp_endpoint_close(struct ofp_endpoint *base, uint64_t deadline)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);

    (void)deadline;
    endpoint->closing = true;
    tcp_endpoint_close_common(endpoint);
}
