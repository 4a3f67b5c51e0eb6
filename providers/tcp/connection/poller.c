/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Epoll descriptors. An endpoint with many connections has one of its own. Connected endpoints have one connection each, and there may be
 * thousands: those of a domain share one, so each costs one descriptor, its socket.
 */
#include "connection/poller.h"

#include <errno.h>
#include <sys/epoll.h>

#include "connection/connection.h"
#include "connection/handshake.h"
#include "connection/listen.h"

#define EVENTS 32
/* How long not to look around, ns, where the last looks found nothing: a question costs as much as a packet. */
#define POLL_PAUSE_LONGEST UINT64_C(64000)
/* Calls of progress until a connection that is hot all the time is taken out of epoll. */
#define HOT_TURNS 256

/* ---------------------------------------------------------------------------------------------------------- polling */

static void handle_socket_events(struct tcp_connection *connection, uint32_t events)
{
    if (connection->state == TCP_OVER)
        return;
    if (connection->state != TCP_UP && connection->state != TCP_LEAVING) {
        tcp_handshake_progress(connection);
        return;
    }
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        connection->hangup = true;
    if (events & EPOLLOUT && connection->blocked) {
        connection->blocked = false;
        tcp_connection_schedule_flush(connection);
    }
    if (events & ~(uint32_t)EPOLLOUT)
        tcp_connection_schedule_read(connection);
}

int tcp_poller_poll(struct tcp_poller *poller)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(poller->epoll_fd, events, EVENTS, 0);

    if (poller->hot)
        poller->polled_at = tcp_core->now();
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr)
            handle_socket_events(events[i].data.ptr, events[i].events);
        else
            tcp_listener_accept(poller->listening);
    }
    return count > 0 ? count : 0;
}

/* However busy the hot one is; and when it waits for room to write, epoll has to tell. */
static bool is_poll_due(const struct tcp_poller *poller)
{
    return !poller->hot || poller->hot->blocked || tcp_core->now() - poller->polled_at > poller->poll_pause;
}

int tcp_poller_poll_if_due(struct tcp_poller *poller)
{
    int events;

    if (!is_poll_due(poller))
        return 0;
    events = tcp_poller_poll(poller);
    if (events)
        poller->poll_pause = TCP_POLL_PAUSE;
    else if (poller->poll_pause < POLL_PAUSE_LONGEST)
        poller->poll_pause *= 2;
    return events;
}

/* ----------------------------------------------------------------------------------------------- the hot connection */

/*
 * What is read anyway in every call of progress needs no event: each packet would wake epoll's queue, at the sender's cost
 * where both share a machine. Until somebody sleeps, another connection is the hot one, or room to write is waited for.
 */
void tcp_poller_watch_again(struct tcp_poller *poller)
{
    struct tcp_connection *connection = poller->unwatched;

    poller->unwatched = NULL;
    poller->hot_turns = 0;
    if (connection && tcp_connection_watch(connection) != 0)
        tcp_connection_mark_failed(connection, ENOMEM);
}

void tcp_poller_unwatch(struct tcp_poller *poller, struct tcp_connection *hot)
{
    if (poller->unwatched == hot && !hot->blocked)
        return;
    if (poller->unwatched) {
        tcp_poller_watch_again(poller);
    } else if (!hot->blocked && !poller->armed && ++poller->hot_turns > HOT_TURNS) {
        epoll_ctl(poller->epoll_fd, EPOLL_CTL_DEL, hot->stream.fd, NULL);
        poller->unwatched = hot;
    }
}

/* ---------------------------------------------------------------------------------------------------------- members */

static void poller_woken(struct ofp_watch *watch, uint32_t events)
{
    (void)events;
    tcp_poller_poll(OFP_CONTAINER_OF(watch, struct tcp_poller, watch));
}

static int open_poller(struct tcp_poller *poller)
{
    int fd = tcp_descriptor_register(epoll_create1(EPOLL_CLOEXEC));

    if (fd < 0)
        return -errno;
    *poller = (struct tcp_poller){
        .epoll_fd = fd, .poll_pause = TCP_POLL_PAUSE, .watch = {.fd = fd, .events = EPOLLIN, .ready = poller_woken}};
    ofp_list_init(&poller->members);
    return 0;
}

int tcp_poller_enter(struct tcp_endpoint *endpoint, bool shared)
{
    struct tcp_poller *poller = shared ? &endpoint->domain->shared : &endpoint->own;
    bool is_open = shared && !ofp_list_empty(&poller->members);
    int error = is_open ? 0 : open_poller(poller);

    if (error)
        return error;
    endpoint->poller = poller;
    ofp_list_append(&poller->members, &endpoint->member);
    return 0;
}

void tcp_poller_leave(struct tcp_endpoint *endpoint)
{
    tcp_poller_disarm(endpoint);
    ofp_list_remove(&endpoint->member);
    if (ofp_list_empty(&endpoint->poller->members))
        tcp_descriptor_close(endpoint->poller->epoll_fd);
}

int tcp_poller_arm(struct tcp_endpoint *endpoint)
{
    struct tcp_poller *poller = endpoint->poller;
    int error = 0;

    if (endpoint->armed)
        return 0;
    if (!poller->armed)
        error = tcp_core->watch_add(endpoint->domain->base, &poller->watch);
    if (error)
        return error;
    poller->armed++;
    endpoint->armed = true;
    return 0;
}

void tcp_poller_disarm(struct tcp_endpoint *endpoint)
{
    if (!endpoint->armed)
        return;
    endpoint->armed = false;
    if (--endpoint->poller->armed == 0)
        tcp_core->watch_remove(endpoint->domain->base, &endpoint->poller->watch);
}
