/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting to a peer with several addresses, as RFC 8305 does for names. The addresses are sorted by nearness. Each
 * has TCP_RACE_PAUSE before the next is tried in parallel; a failure starts the next at once. The first socket that
 * connects wins, and the others are closed. connect.c has the timer.
 */
#include "connection/race.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "address/order.h"
#include "stream/socket.h"

static void get_candidate_address(const struct ofp_peer *peer, uint32_t number, union tcp_address *address)
{
    const struct ofp_other_address *other = number ? &peer->others[number - 1] : NULL;

    tcp_address_parse(other ? other->address : peer->address, other ? other->length : peer->address_length, address);
}

void tcp_peer_get_reached(const struct ofp_peer *peer, union tcp_address *address)
{
    uint8_t reached = tcp_peer_of(peer)->reached;

    get_candidate_address(peer, reached == TCP_REACHED_LOOPBACK ? 0 : reached, address);
    if (reached == TCP_REACHED_LOOPBACK)
        tcp_address_set_loopback(address);
}

void tcp_peer_set_reached(struct ofp_peer *peer, const union tcp_address *address)
{
    struct tcp_peer *self = tcp_peer_of(peer);

    self->reached = 0;
    for (uint32_t i = 0; i < peer->other_count; i++)
        if (peer->others[i].length == tcp_address_get_length(address) &&
            memcmp(peer->others[i].address, address, peer->others[i].length) == 0)
            self->reached = (uint8_t)(i + 1);
}

struct tcp_race *tcp_race_create(const struct ofp_peer *peer)
{
    const struct tcp_endpoint *endpoint = tcp_endpoint_of(peer->endpoint);
    uint32_t all = peer->other_count + 1, usable = 0, ordered;
    struct tcp_race *race = calloc(1, sizeof(*race) + all * sizeof(race->candidates[0]));
    union tcp_address *addresses = calloc(all, sizeof(*addresses));
    uint32_t *numbers = calloc(all, sizeof(*numbers)), *order = calloc(all, sizeof(*order));
    struct tcp_interface own[TCP_INTERFACES_MAX];
    int own_count = tcp_interfaces_query(own, NULL);

    if (!race || !addresses || !numbers || !order) {
        free(race);
        race = NULL;
        goto out;
    }
    race->epoll_fd = endpoint->poller->epoll_fd;
    for (uint32_t i = 0; i < all; i++) {
        get_candidate_address(peer, i, &addresses[usable]);
        /* A socket reaches only addresses of its own family, unless it is bound to every address. */
        if (addresses[usable].any.sa_family == endpoint->address.any.sa_family || endpoint->anywhere == AF_INET6)
            numbers[usable++] = i;
    }
    ordered = tcp_addresses_sort(addresses, usable, own, own_count < 0 ? 0 : own_count, order);
    for (uint32_t i = 0; i < ordered; i++)
        race->candidates[race->count++] = (struct tcp_candidate){.number = numbers[order[i]], .fd = -1};
out:
    free(addresses);
    free(numbers);
    free(order);
    return race;
}

/* ----------------------------------------------------------------------------------------------------------- running */

static int start_candidate(struct tcp_connection *connection, struct tcp_candidate *candidate)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    union tcp_address address;
    int error;

    get_candidate_address(connection->peer, candidate->number, &address);
    error = -tcp_socket_connect(connection->endpoint, &address, (socklen_t)tcp_address_get_length(&address),
                                &candidate->fd);
    if (!error && epoll_ctl(connection->meeting->race->epoll_fd, EPOLL_CTL_ADD, candidate->fd, &event) != 0) {
        error = errno;
        tcp_descriptor_close(candidate->fd);
        candidate->fd = -1;
    }
    return error;
}

static void stop_candidate(struct tcp_race *race, struct tcp_candidate *candidate)
{
    if (candidate->fd < 0)
        return;
    /* A process that is being forked may have a copy of the socket, for which epoll would still report events. */
    epoll_ctl(race->epoll_fd, EPOLL_CTL_DEL, candidate->fd, NULL);
    tcp_descriptor_close(candidate->fd);
    OFP_CHECK(race->open > 0);
    candidate->fd = -1;
    race->open--;
}

bool tcp_race_has_next(const struct tcp_race *race)
{
    for (uint32_t i = race->next; i < race->count; i++)
        if (!race->candidates[i].wrong)
            return true;
    return false;
}

int tcp_race_start_next(struct tcp_connection *connection)
{
    struct tcp_race *race = connection->meeting->race;

    OFP_CHECK(race->open <= race->next && race->next <= race->count);
    while (race->next < race->count) {
        struct tcp_candidate *candidate = &race->candidates[race->next++];
        int error = candidate->wrong ? 0 : start_candidate(connection, candidate);

        if (candidate->fd >= 0) {
            race->open++;
            return 0;
        }
        /* ECONNREFUSED comes from the peer's host, so it says more than the lack of a route. */
        if (error && race->error != ECONNREFUSED)
            race->error = error;
    }
    if (race->open)
        return 0;
    return race->error ? race->error : EHOSTUNREACH;
}

int tcp_race_start(struct tcp_connection *connection)
{
    struct tcp_race *race = connection->meeting->race;

    tcp_race_close(race);
    race->next = 0;
    race->error = 0;
    return tcp_race_start_next(connection);
}

int tcp_race_collect(struct tcp_connection *connection)
{
    struct tcp_race *race = connection->meeting->race;
    bool failed = false;

    for (uint32_t i = 0; i < race->next; i++) {
        struct tcp_candidate *candidate = &race->candidates[i];
        int error = candidate->fd >= 0 ? tcp_socket_check_connect(candidate->fd) : EAGAIN;

        if (error == EAGAIN)
            continue;
        if (!error) {
            connection->stream.fd = candidate->fd;
            candidate->fd = -1;
            race->open--;
            race->winner = i;
            tcp_peer_of(connection->peer)->reached = candidate->number;
            tcp_race_close(race);
            return 0;
        }
        stop_candidate(race, candidate);
        failed = true;
        if (race->error != ECONNREFUSED)
            race->error = error;
    }
    if (failed && tcp_race_start_next(connection) != 0)
        return race->error;
    return EAGAIN;
}

bool tcp_race_mark_wrong(struct tcp_race *race)
{
    OFP_CHECK(race->winner < race->count && race->open == 0);
    race->candidates[race->winner].wrong = true;
    race->next = 0;
    return tcp_race_has_next(race);
}

void tcp_race_close(struct tcp_race *race)
{
    for (uint32_t i = 0; i < race->count; i++)
        stop_candidate(race, &race->candidates[i]);
}
