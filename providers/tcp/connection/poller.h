/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_POLLER_H
#define TCP_POLLER_H

#include "objects.h"

/* The hot connection is read in every call of progress; the others are looked at after so long, ns. */
#define TCP_POLL_PAUSE UINT64_C(8000)
/* The endpoint's own, or the one that is shared. */
int tcp_poller_enter(struct tcp_endpoint *endpoint, bool shared);
void tcp_poller_leave(struct tcp_endpoint *endpoint);
/* Have the reactor watch it while this endpoint is armed: 0, or a negative errno. */
int tcp_poller_arm(struct tcp_endpoint *endpoint);
void tcp_poller_disarm(struct tcp_endpoint *endpoint);
/* Ask epoll which sockets are ready. Returns how many. */
int tcp_poller_poll(struct tcp_poller *poller);
/* The same for other connections than the hot one, where it is time to. */
int tcp_poller_poll_if_due(struct tcp_poller *poller);
/* Let epoll tell again of the connection that it was taken out of. */
void tcp_poller_watch_again(struct tcp_poller *poller);
/* The hot connection is read anyway: epoll need not tell of it, after a while. */
void tcp_poller_unwatch(struct tcp_poller *poller, struct tcp_connection *hot);
static inline bool tcp_poller_is_polled_by(const struct tcp_endpoint *endpoint)
{
    return endpoint->poller->members.next == &endpoint->member;
}

#endif
