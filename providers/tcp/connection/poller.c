/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Epoll descriptors. An RDM endpoint has many connections and an epoll descriptor of its own. MSG endpoints have one
 * connection each, and there may be thousands, so all of a domain share one. Each then costs one descriptor, its socket.
 *
 * The connection that was read last is hot: progress reads it in every call, and polls epoll for the others less often.
 * After HOT_TURNS calls it is removed from epoll. All functions need the domain's lock; the reactor calls poller_woken
 * with it.
 */
#include "connection/poller.h"

#include <errno.h>
#include <sys/epoll.h>

#include "connection/connection.h"
#include "connection/handshake.h"
#include "connection/listen.h"
#include "connection/secure.h"
#include "stream/tls.h"

#define EVENTS 32
/*
 * TLS handshakes that one poll serves. A handshake's public-key work takes as long as dozens of polls, so more at a time
 * would not end them earlier, and connections that are up would wait longer.
 */
#define HANDSHAKES 1
/* Longest pause between polls, ns. The pause grows while polls find nothing, since a poll costs as much as a packet. */
#define POLL_PAUSE_LONGEST UINT64_C(64000)
/* Calls of progress after which the hot connection is removed from epoll. */
#define HOT_TURNS 256

/* ---------------------------------------------------------------------------------------------------------- polling */

static void handle_socket_events(struct tcp_connection *connection, uint32_t events)
{
    if (connection->state == TCP_OVER)
        return;
    if (connection->state != TCP_UP && connection->state != TCP_LEAVING) {
        if (!tcp_encryption_is_pending(connection))
            tcp_handshake_progress(connection);
        else if (!ofp_list_linked(&connection->meeting->handshake))
            ofp_list_append(&connection->endpoint->poller->handshakes, &connection->meeting->handshake);
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

/* The account that pays for the next step of a handshake. NULL: this side owes it, since it has begun or answered. */
static struct tcp_source *find_source(const struct tcp_connection *connection)
{
    if (connection->connector || tcp_tls_has_answered(&connection->stream))
        return NULL;
    return &connection->endpoint->poller->sources[connection->meeting->source];
}

/* The first connection whose turn has come; NULL: none, and *turn is when the first one's will. */
static struct tcp_connection *find_handshake(const struct tcp_poller *poller, uint64_t now, uint64_t *turn)
{
    *turn = UINT64_MAX;
    for (struct ofp_list *node = poller->handshakes.next; node != &poller->handshakes; node = node->next) {
        struct tcp_connection *connection = OFP_CONTAINER_OF(node, struct tcp_meeting, handshake)->connection;
        struct tcp_source *source = find_source(connection);
        uint64_t its = source ? tcp_source_compute_turn(source, now) : now;

        if (its <= now)
            return connection;
        if (its < *turn)
            *turn = its;
    }
    return NULL;
}

static void serve_handshake(struct tcp_connection *connection, uint64_t now)
{
    struct tcp_source *source = find_source(connection);

    ofp_list_remove(&connection->meeting->handshake);
    tcp_handshake_progress(connection);
    if (source) {
        uint64_t end = tcp_core->now();

        tcp_source_charge(source, end - now, end);
    }
}

static void turn_expired(struct ofp_timer *timer, uint64_t now);

static void start_turn_timer(struct tcp_poller *poller, uint64_t turn)
{
    const struct tcp_endpoint *first = OFP_CONTAINER_OF(poller->members.next, struct tcp_endpoint, member);

    if (poller->turn.position)
        return;
    poller->turn.deadline = turn;
    poller->turn.expired = turn_expired;
    tcp_core->timer_start(first->domain->base, &poller->turn);
}

/* Returns how many handshakes it has served. */
static int serve_handshakes(struct tcp_poller *poller)
{
    struct tcp_connection *connection;
    uint64_t turn;
    int count = 0;

    while ((connection = find_handshake(poller, tcp_core->now(), &turn)) && count < HANDSHAKES) {
        serve_handshake(connection, tcp_core->now());
        count++;
    }
    /* A sleeping thread depends on epoll alone, which has reported the others already. */
    if (connection && poller->armed)
        tcp_connection_watch_anew(connection);
    else if (!connection && turn != UINT64_MAX)
        start_turn_timer(poller, turn);
    return count;
}

static void turn_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    serve_handshakes(OFP_CONTAINER_OF(timer, struct tcp_poller, turn));
}

int tcp_poller_poll(struct tcp_poller *poller)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(poller->epoll_fd, events, OFP_ROUND_BOUND(EVENTS), 0);

    if (poller->hot)
        poller->polled_at = tcp_core->now();
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr)
            handle_socket_events(events[i].data.ptr, events[i].events);
        else
            tcp_listener_accept(poller->listening);
    }
    if (TCP_UNLIKELY(!ofp_list_empty(&poller->handshakes)))
        count = (count > 0 ? count : 0) + serve_handshakes(poller);
    return count > 0 ? count : 0;
}

/*
 * Without a hot connection, always. Also when the hot one is blocked, since only epoll reports that its socket accepts
 * output again.
 */
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
 * The hot connection is read in every call of progress and needs no events. Each packet would cost its sender a wake-up
 * of the epoll queue, if both share a host. Events are needed again when a thread sleeps, another connection becomes
 * hot, or the socket is blocked.
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
        OFP_CHECK(hot->state == TCP_UP && hot->endpoint->poller == poller);
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
    ofp_list_init(&poller->handshakes);
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
    if (ofp_list_empty(&endpoint->poller->members)) {
        tcp_core->timer_stop(endpoint->domain->base, &endpoint->poller->turn);
        tcp_descriptor_close(endpoint->poller->epoll_fd);
    }
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
    OFP_CHECK(!poller->armed || !poller->unwatched);
    poller->armed++;
    endpoint->armed = true;
    return 0;
}

void tcp_poller_disarm(struct tcp_endpoint *endpoint)
{
    if (!endpoint->armed)
        return;
    OFP_CHECK(endpoint->poller->armed > 0);
    endpoint->armed = false;
    if (--endpoint->poller->armed == 0)
        tcp_core->watch_remove(endpoint->domain->base, &endpoint->poller->watch);
}
