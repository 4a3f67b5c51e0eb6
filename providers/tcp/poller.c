/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Epoll descriptors. An endpoint with many connections has one of its own. Connected endpoints have one connection each, and there may be
 * thousands: those of a domain share one, so each costs one descriptor, its socket.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "tcp.h"

static void woken(struct ofp_watch *watch, uint32_t events)
{
    (void)events;
    tcp_poll(OFP_CONTAINER_OF(watch, struct tcp_poller, watch));
}

static int poller_open(struct tcp_poller *poller)
{
    int fd = tcp_descriptor_keep(epoll_create1(EPOLL_CLOEXEC));

    if (fd < 0)
        return -errno;
    *poller = (struct tcp_poller){
        .epoll_fd = fd, .look_pause = TCP_LOOK_PAUSE, .watch = {.fd = fd, .events = EPOLLIN, .ready = woken}};
    ofp_list_init(&poller->members);
    return 0;
}

int tcp_poller_join(struct tcp_endpoint *endpoint, bool shared)
{
    struct tcp_poller *poller = shared ? &endpoint->domain->shared : &endpoint->own;
    bool is_open = shared && !ofp_list_empty(&poller->members);
    int error = is_open ? 0 : poller_open(poller);

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
