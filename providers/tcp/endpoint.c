/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: opening, closing, progress, going to sleep. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tcp.h"

#define EVENTS 32
/* How long not to look around, ns, where the last looks found nothing: a question costs as much as a packet. */
#define LOOK_PAUSE_LONGEST UINT64_C(64000)
/* Calls of progress until a connection that is hot all the time is taken out of epoll. */
#define HOT_TURNS 256
#define STALL_PAUSE_FIRST (TCP_MILLISECOND / 4)
#define STALL_PAUSE_LONGEST (8 * TCP_MILLISECOND)

/* It only ends a sleep: progress tries the stalled connections again. */
static void look_again(struct ofp_timer *timer, uint64_t now)
{
    (void)timer;
    (void)now;
}

int tcp_host_open(struct tcp_endpoint *endpoint, struct ofp_domain *domain, bool shares_poller)
{
    endpoint->domain = tcp_domain_of(domain);
    endpoint->listener = -1;
    endpoint->stall_timer.expired = look_again;
    endpoint->stall_pause = STALL_PAUSE_FIRST;
    ofp_list_init(&endpoint->ready);
    ofp_list_init(&endpoint->dirty);
    ofp_list_init(&endpoint->stalled);
    ofp_list_init(&endpoint->creditors);
    ofp_list_init(&endpoint->connections);
    ofp_list_init(&endpoint->dead);
    ofp_list_init(&endpoint->unproven);
    if (!endpoint->domain->scratch)
        endpoint->domain->scratch = malloc(TCP_SCRATCH);
    endpoint->scratch = endpoint->domain->scratch;
    return endpoint->scratch ? tcp_poller_join(endpoint, shares_poller) : -ENOMEM;
}

void tcp_host_close(struct tcp_endpoint *endpoint)
{
    struct ofp_domain *domain = endpoint->domain->base;

    if (endpoint->request)
        tcp_msg_refuse(endpoint->request, NULL, 0);
    while (!ofp_list_empty(&endpoint->connections))
        tcp_connection_discard(OFP_CONTAINER_OF(endpoint->connections.next, struct tcp_connection, node));
    tcp_connections_free_dead(endpoint);
    tcp_listen_close(endpoint);
    tcp_core->timer_stop(domain, &endpoint->stall_timer);
    tcp_poller_leave(endpoint);
}

int tcp_endpoint_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    int error = tcp_host_open(endpoint, base->domain, false);

    if (error)
        return error;
    endpoint->base = base;
    tcp_info_address(base->info, &endpoint->address);
    error = tcp_bind(endpoint, service, text, text_size);
    if (!error)
        error = tcp_listen(endpoint);
    if (error)
        tcp_host_close(endpoint);
    return error;
}

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

/* --------------------------------------------------------------------------------------------------------- progress */

static void notice(struct tcp_connection *connection, uint32_t events)
{
    if (connection->state == TCP_OVER)
        return;
    if (connection->state != TCP_UP && connection->state != TCP_LEAVING) {
        tcp_handshake(connection);
        return;
    }
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        connection->hangup = true;
    if (events & EPOLLOUT && connection->blocked) {
        connection->blocked = false;
        tcp_queue_later(connection);
    }
    if (events & ~(uint32_t)EPOLLOUT)
        tcp_connection_ready(connection);
}

int tcp_poll(struct tcp_poller *poller)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(poller->epoll_fd, events, EVENTS, 0);

    if (poller->hot)
        poller->looked_at = tcp_core->now();
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr)
            notice(events[i].data.ptr, events[i].events);
        else
            tcp_accept(poller->listening);
    }
    return count > 0 ? count : 0;
}

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
        endpoint->stall_pause = STALL_PAUSE_FIRST;
    return events;
}

/* For other connections than the hot one. */
static int look_around(struct tcp_poller *poller)
{
    int events = tcp_poll(poller);

    if (events)
        poller->look_pause = TCP_LOOK_PAUSE;
    else if (poller->look_pause < LOOK_PAUSE_LONGEST)
        poller->look_pause *= 2;
    return events;
}

/* However busy the hot one is; and when it waits for room to write, epoll has to tell. */
static bool shall_look_around(const struct tcp_poller *poller)
{
    return !poller->hot || poller->hot->blocked || tcp_core->now() - poller->looked_at > poller->look_pause;
}

/*
 * What is read anyway in every call of progress needs no event: each packet would wake epoll's queue, at the sender's cost
 * where both share a machine. Until somebody sleeps, another connection is the hot one, or room to write is waited for.
 */
void tcp_watch_again(struct tcp_poller *poller)
{
    struct tcp_connection *connection = poller->unwatched;

    poller->unwatched = NULL;
    poller->hot_turns = 0;
    if (connection && tcp_connection_watch(connection) != 0)
        tcp_connection_doom(connection, ENOMEM);
}

static void watch_no_longer(struct tcp_poller *poller, struct tcp_connection *hot)
{
    if (poller->unwatched == hot && !hot->blocked)
        return;
    if (poller->unwatched) {
        tcp_watch_again(poller);
    } else if (!hot->blocked && !poller->armed && ++poller->hot_turns > HOT_TURNS) {
        epoll_ctl(poller->epoll_fd, EPOLL_CTL_DEL, hot->stream.fd, NULL);
        poller->unwatched = hot;
    }
}

int tcp_progress(struct ofp_endpoint *base)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);
    struct tcp_poller *poller = endpoint->poller;
    struct tcp_connection *hot = poller->hot;
    int events = 0;

    if (hot && hot->endpoint == endpoint && hot->state == TCP_UP) {
        watch_no_longer(poller, hot);
        if (!hot->stalled)
            events = tcp_receive(hot);
    }
    if (tcp_poller_is_asked_by(endpoint) && shall_look_around(poller))
        events += look_around(poller);
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
    tcp_watch_again(endpoint->poller);
    if ((tcp_poller_is_asked_by(endpoint) && tcp_poll(endpoint->poller)) || !ofp_list_empty(&endpoint->ready) ||
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

void tcp_endpoint_close(struct ofp_endpoint *base, uint64_t deadline)
{
    struct tcp_endpoint *endpoint = tcp_endpoint_of(base);

    (void)deadline;
    endpoint->closing = true;
    tcp_host_close(endpoint);
}
