/* SPDX-License-Identifier: BSD-3-Clause */
/* What endpoints and listeners share: the connections, the listening socket, the membership of a poller. */
#include "endpoint/common.h"

#include <errno.h>
#include <stdlib.h>

#include "connection/connection.h"
#include "connection/control.h"
#include "connection/listen.h"
#include "connection/poller.h"

/* The timer only ends a sleep. Progress then retries the stalled connections. */
static void stall_timer_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)timer;
    (void)now;
}

int tcp_endpoint_open_common(struct tcp_endpoint *endpoint, struct ofp_domain *domain,
                             const struct tcp_connection_ops *ops, bool shares_poller)
{
    endpoint->ops = ops;
    endpoint->domain = tcp_domain_of(domain);
    endpoint->listener = -1;
    endpoint->stall_timer.expired = stall_timer_expired;
    endpoint->stall_pause = TCP_STALL_PAUSE;
    endpoint->rounds = 1;
    ofp_list_init(&endpoint->ready);
    ofp_list_init(&endpoint->dirty);
    ofp_list_init(&endpoint->stalled);
    ofp_list_init(&endpoint->creditors);
    ofp_list_init(&endpoint->connections);
    ofp_list_init(&endpoint->dead);
    ofp_list_init(&endpoint->unproven);
    if (!endpoint->domain->scratch)
        endpoint->domain->scratch = malloc(TCP_SCRATCH + TCP_PACKED);
    if (!endpoint->domain->scratch)
        return -ENOMEM;
    endpoint->scratch = endpoint->domain->scratch;
    return tcp_poller_enter(endpoint, shares_poller);
}

void tcp_endpoint_close_common(struct tcp_endpoint *endpoint)
{
    struct ofp_domain *domain = endpoint->domain->base;

    if (endpoint->request)
        tcp_request_reject(endpoint->request, NULL, 0);
    while (!ofp_list_empty(&endpoint->connections))
        tcp_connection_discard(OFP_CONTAINER_OF(endpoint->connections.next, struct tcp_connection, node));
    tcp_connections_free_dead(endpoint);
    tcp_listener_close(endpoint);
    tcp_core->timer_stop(domain, &endpoint->stall_timer);
    tcp_poller_leave(endpoint);
}
