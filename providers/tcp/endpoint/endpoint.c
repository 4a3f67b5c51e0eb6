/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: opening, closing, progress, going to sleep. */
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

int tcp_endpoint_name(struct ofp_endpoint *base, void *address, size_t *length)
{
    const struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    size_t room = *length;

    *length = tcp_address_length(&endpoint->address);
    if (room < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &endpoint->address, *length);
    return 0;
}

int tcp_endpoint_name_also(struct ofp_endpoint *base, uint32_t number, void *address, size_t *length)
{
    const struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    union tcp_address all[TCP_INTERFACES_MAX], any = {.any.sa_family = endpoint->anywhere};
    size_t room = *length;
    int count = 0;

    if (endpoint->anywhere && !base->connects_only)
        count = tcp_addresses_of(&any, all);
    for (int i = 0; i < count; i++) {
        tcp_address_set_port(&all[i], tcp_address_port(&endpoint->address));
        if (tcp_address_same_ip(&all[i], &endpoint->address) || number--)
            continue;
        *length = tcp_address_length(&all[i]);
        if (room < *length)
            return -OFP_ETOOSMALL;
        memcpy(address, &all[i], *length);
        return 0;
    }
    return -ENOENT;
}

/* --------------------------------------------------------------------------------------------------------- progress */

static int read_one(struct tcp_connection *connection)
{
    if (TCP_UNLIKELY(connection->doom && connection->state == TCP_UP)) {
        tcp_connection_end(connection, connection->doom, false, NULL);
        return 1;
    }
    if (connection->state != TCP_UP && connection->state != TCP_LEAVING) {
        ofp_list_remove(&connection->ready);
        return 0;
    }
    /* It becomes ready again when there is room. */
    if (!tcp_may_read(connection)) {
        if (ofp_list_linked(&connection->ready))
            ofp_list_remove(&connection->ready);
        if (!connection->stalled && !ofp_list_linked(&connection->stall))
            ofp_list_append(&connection->endpoint->stalled, &connection->stall);
        return 0;
    }
    return tcp_receive(connection);
}

static int read_ready(struct tcp_endpoint *endpoint)
{
    struct ofp_list turn, *node;
    int events = 0;

    if (ofp_list_empty(&endpoint->ready))
        return 0;
    /* Each once, whoever becomes ready again meanwhile. */
    turn = endpoint->ready;
    turn.next->previous = turn.previous->next = &turn;
    ofp_list_init(&endpoint->ready);
    while (!ofp_list_empty(&turn)) {
        node = turn.next;
        ofp_list_remove(node);
        ofp_list_append(&endpoint->ready, node);
        events += read_one(OFP_CONTAINER_OF(node, struct tcp_connection, ready));
    }
    return events;
}

static int retry_stalled(struct tcp_endpoint *endpoint)
{
    struct ofp_list *node, *following;
    int events = 0;

    OFP_LIST_EACH(node, following, &endpoint->stalled) {
        struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_connection, stall);

        if (connection->stalled && tcp_stall_is_hopeless(connection)) {
            tcp_stall_end(connection);
            /* Others may have gone with it. */
            return events + 1;
        }
        if (connection->stalled) {
            events += tcp_receive_again(connection);
        } else if (tcp_may_read(connection)) {
            ofp_list_remove(node);
            tcp_connection_ready(connection);
            events++;
        }
    }
    if (events)
        endpoint->stall_pause = TCP_STALL_PAUSE;
    return events;
}

int tcp_progress(struct ofp_endpoint *base)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    struct tcp_poller *poller = endpoint->poller;
    struct tcp_connection *hot = poller->hot;
    int events = 0;

    endpoint->looks++;
    if (!ofp_list_empty(&endpoint->dirty))
        tcp_flush(base);
    if (hot && hot->endpoint == endpoint && hot->state == TCP_UP) {
        tcp_poller_unwatch(poller, hot);
        if (!hot->stalled)
            events = tcp_receive(hot);
    }
    if (tcp_poller_is_asked_by(endpoint))
        events += tcp_poller_look(poller);
    events += read_ready(endpoint);
    if (TCP_UNLIKELY(!ofp_list_empty(&endpoint->stalled)))
        events += retry_stalled(endpoint);
    if (TCP_UNLIKELY(!ofp_list_empty(&endpoint->creditors)))
        events += tcp_credit_settle_all(endpoint);
    if (!ofp_list_empty(&endpoint->dirty))
        tcp_flush(base);
    if (TCP_UNLIKELY(endpoint->quitting != NULL))
        tcp_msg_quit(endpoint);
    if (TCP_UNLIKELY(!ofp_list_empty(&endpoint->dead)))
        tcp_connections_free_dead(endpoint);
    return events;
}

bool tcp_arm(struct ofp_endpoint *base)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);

    tcp_flush(base);
    tcp_poller_watch_again(endpoint->poller);
    if ((tcp_poller_is_asked_by(endpoint) && tcp_poller_poll(endpoint->poller)) || !ofp_list_empty(&endpoint->ready) ||
        tcp_msg_may_quit(endpoint))
        return false;
    /* Only while somebody sleeps: otherwise the kernel would tell the reactor of every packet, which costs its sender. */
    if (tcp_poller_arm(endpoint) != 0)
        return false;
    /* Who posts the receive that they wait for may be another thread. */
    if (!ofp_list_empty(&endpoint->stalled)) {
        endpoint->stall_timer.deadline = tcp_core->now() + endpoint->stall_pause;
        if (endpoint->stall_pause < STALL_PAUSE_LONGEST)
            endpoint->stall_pause *= 2;
        tcp_core->timer_start(base->domain, &endpoint->stall_timer);
    }
    return true;
}

void tcp_disarm(struct ofp_endpoint *base) { tcp_poller_disarm(tcp_endpoint_of(base)); }

/* ---------------------------------------------------------------------------------------------------------- closing */

int tcp_endpoint_drain(struct ofp_endpoint *base)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    struct ofp_list *node, *following;
    bool left = true;

    /* From now on who knocks here is refused. */
    if (!endpoint->closing) {
        tcp_listen_close(endpoint);
        OFP_LIST_EACH(node, following, &endpoint->connections) {
            struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_connection, node);

            if (connection->state == TCP_UP)
                tcp_send_goodbye(connection, true);
        }
    }
    endpoint->closing = true;
    OFP_LIST_EACH(node, following, &endpoint->connections) {
        struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_connection, node);

        if (connection->state != TCP_UP && connection->state != TCP_LEAVING)
            continue;
        left &= tcp_connection_has_left(connection);
    }
    return left ? 0 : -EAGAIN;
}

uint64_t tcp_peer_unsent(const struct ofp_peer *peer)
{
    const struct tcp_connection *connection = tcp_peer_of(peer)->connection;
    uint64_t count = connection ? tcp_queue_completed(connection) : 0;

    /* Nobody knows how many operations the bytes are that the kernel still has; they are one at least. */
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
    tcp_common_close(endpoint);
}
