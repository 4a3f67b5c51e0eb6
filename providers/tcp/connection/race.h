/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_RACE_H
#define TCP_RACE_H

#include "objects.h"

/* How long an address is tried before the next one is tried in parallel. */
#define TCP_RACE_PAUSE (250 * TCP_MILLISECOND)

/* Value of tcp_peer.reached: the loopback address, with the port of peer->address. */
#define TCP_REACHED_LOOPBACK UINT8_MAX

/*
 * The attempts to connect to one peer at several addresses. Owned by the meeting. `open` counts the candidates with a
 * socket; candidates from `next` on have none.
 */
struct tcp_race {
    uint32_t count, next; /* candidates; index of the next one to try */
    uint32_t open;        /* attempts in progress */
    uint32_t winner;      /* index of the candidate whose socket the connection got last */
    int error;            /* errno of a failed attempt; 0: none */
    int epoll_fd;
    struct tcp_candidate {
        uint32_t number; /* value for tcp_peer.reached */
        int fd;          /* -1: no attempt in progress */
        bool wrong;      /* another endpoint answered there */
    } candidates[];
};

/* Create the race, with the usable addresses in their order. NULL: out of memory. */
struct tcp_race *tcp_race_create(const struct ofp_peer *peer);
/* Start with the first candidate. 0: an attempt is in progress; otherwise a positive errno. */
int tcp_race_start(struct tcp_connection *connection);
/* Start the next candidate too, if there is one. 0: an attempt is in progress; otherwise a positive errno. */
int tcp_race_start_next(struct tcp_connection *connection);
/* Whether a candidate remains to be tried. */
bool tcp_race_has_next(const struct tcp_race *race);
/*
 * Check the sockets after an event. 0: the connection has the first socket that connected, and the others are closed;
 * EAGAIN: none has connected; another errno: all have failed.
 */
int tcp_race_collect(struct tcp_connection *connection);
/* Exclude the last winner, because another endpoint answered. False: no candidate remains. */
bool tcp_race_mark_wrong(struct tcp_race *race);
void tcp_race_close(struct tcp_race *race);
/* Store the address from which the peer connected. */
void tcp_peer_set_reached(struct ofp_peer *peer, const union tcp_address *address);
/* The address at which the peer was reached, or is to be. */
void tcp_peer_get_reached(const struct ofp_peer *peer, union tcp_address *address);

#endif
