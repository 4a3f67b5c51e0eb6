/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_POLLER_H
#define TCP_POLLER_H

#include "objects.h"

/* Shortest pause between polls while there is a hot connection, ns. */
#define TCP_POLL_PAUSE UINT64_C(8000)
/* Add the endpoint to its own poller, or to the domain's shared one. */
int tcp_poller_enter(struct tcp_endpoint *endpoint, bool shared);
void tcp_poller_leave(struct tcp_endpoint *endpoint);
/* Have the reactor watch the poller while this endpoint is armed. 0, or a negative errno. */
int tcp_poller_arm(struct tcp_endpoint *endpoint);
void tcp_poller_disarm(struct tcp_endpoint *endpoint);
/* Poll epoll and handle the events. Returns their number. */
int tcp_poller_poll(struct tcp_poller *poller);
/* Poll for the connections beside the hot one, if the pause is over. */
int tcp_poller_poll_if_due(struct tcp_poller *poller);
/* Add the unwatched connection to epoll again. */
void tcp_poller_watch_again(struct tcp_poller *poller);
/* Remove the hot connection from epoll, once it has been hot for long. */
void tcp_poller_unwatch(struct tcp_poller *poller, struct tcp_connection *hot);
static inline bool tcp_poller_is_polled_by(const struct tcp_endpoint *endpoint)
{
    return endpoint->poller->members.next == &endpoint->member;
}

#endif
