/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_RACE_H
#define TCP_RACE_H

#include "objects.h"

/* How long the next address waits for the one before. */
#define TCP_RACE_PAUSE (250 * TCP_MILLISECOND)

/* Addresses of one peer, tried one after the other while those before are still under way; owned by the meeting. */
struct tcp_race {
    uint32_t count, next; /* candidates; the one to be tried next */
    uint32_t open;        /* of them under way */
    uint32_t winner;      /* whose socket the connection got last */
    int error;            /* of one that failed; 0: none has */
    int epoll_fd;
    struct tcp_candidate {
        uint32_t number; /* tcp_peer.reached */
        int fd;          /* -1: not under way */
        bool wrong;      /* somebody else is there */
    } candidates[];
};

/* For a peer with several addresses. NULL: out of memory. */
struct tcp_race *tcp_race_create(const struct ofp_peer *peer);
/* From the first one on. 0: one is under way; otherwise a positive errno. */
int tcp_race_start(struct tcp_connection *connection);
/* The next one too, if there is one: 0, or a positive errno when none is under way. */
int tcp_race_start_next(struct tcp_connection *connection);
/* Whether there is one. */
bool tcp_race_has_next(const struct tcp_race *race);
/*
 * Something has happened to the sockets. 0: the connection has that of the first which TCP has connected, and the others are closed; EAGAIN: none
 * is yet; another errno: all have failed.
 */
int tcp_race_collect(struct tcp_connection *connection);
/* It has led to somebody else. False: there is none left. */
bool tcp_race_mark_wrong(struct tcp_race *race);
void tcp_race_close(struct tcp_race *race);
/* It called from here. */
void tcp_peer_set_reached(struct ofp_peer *peer, const union tcp_address *address);
/* Where the peer was reached, or is to be. */
void tcp_peer_get_reached(const struct ofp_peer *peer, union tcp_address *address);

#endif
