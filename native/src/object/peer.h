/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's private part of a peer. The domain's lock guards all members. */
#ifndef OFPI_PEER_H
#define OFPI_PEER_H

#include <stddef.h>

#include "base/ids.h"
#include "object/endpoint.h"

/* How the process of a job's rank has ended, as far as the roster has reported it. */
enum ofpi_departure {
    OFPI_STAYS,
    OFPI_LEFT,
    OFPI_DIED,
};

/* A peer that is a rank of a job, whose roster reports the end of its process; roster.c. */
struct ofpi_member {
    struct ofpi_peer *peer;
    uint32_t rank;
    bool awaits_departure;        /* receives that name it end only after the roster has reported how it ended */
    enum ofpi_departure departed; /* never changes back: a rank does not return */
    struct ofp_timer ending; /* runs while `gone` is set and receives that name the peer wait for the roster's report */
};

struct ofpi_flush_part;
struct ofpi_peer_counts;

struct ofpi_peer {
    struct ofp_peer base;     /* first: the provider's view */
    struct ofp_list backlog;  /* operations in the order of posting, until the transport accepts them */
    struct ofp_list pendings; /* operations that the provider has accepted */
    struct ofp_list node;     /* in endpoint->backlogged */
    /* The receive context's messages and receives of this peer. When the peer is lost, only these lists are walked. */
    struct ofp_list announced; /* announced messages: struct ofpi_unexpected.payload.of_peer */
    struct ofp_list receives;  /* receives in flight: struct ofpi_inflight.of_peer */
    /* A server has many peers, so what few of them use lies in the spare words of timers, which nothing else uses. */
    union {
        struct ofp_timer delay; /* runs while a hook delays the head of the backlog; `node` is in no list then */
        struct {
            uint64_t of_delay[3];
            uint32_t unexpected; /* number of its unexpected messages */
        };
    };
    uint32_t sending; /* number of `pendings` that are not receives */
    int incompatible; /* with `gone`: provider_error of why no version is common; else 0 */
    uint32_t number;  /* of its incarnation, the present or the last one; 0: it was never up */
    uint8_t pause;    /* while the peer is absent: length of the next pause, ms */
    bool fenced : 1;  /* the head of the backlog is fenced: it waits until `sending` is 0; `node` is in no list then */
    /*
     * Its process is known dead or replaced, or speaks no version of ours; cleared when it connects, or when its address
     * is inserted again.
     */
    bool gone : 1;
    bool named : 1;   /* a receive that names it was posted, and may still be posted */
    bool bound : 1;   /* a receive that is bound to its incarnation was posted, and may still be posted */
    bool removed : 1; /* its address was removed from the vector */
    bool unsent : 1;  /* endpoint->unsent contains it */
    /* The peer called, and the program has not inserted its address. While it is UNUSED or LOST, `idle` is linked. */
    bool uninserted : 1;
    /* State while the peer is absent; peer_connect.c. */
    bool expected : 1;          /* its address was inserted and it was never connected since: retry to connect */
    bool warned : 1;            /* the log has a warning about the absent peer */
    bool readdressed : 1;       /* base.address is owned: the peer was created with another one */
    bool lengthened : 1;        /* a request of ofp_reach_request waits, or waited, longer than OFIPY_CONNECT_TIMEOUT */
    struct ofpi_member *member; /* owned; NULL: not a rank of a job */
    /* State while the peer is absent: attempts to connect. */
    /* Runs until the next attempt (UNUSED), or until a peer that only connects counts as gone (LOST). */
    union {
        struct ofp_timer again;
        struct {
            uint64_t of_again[3];
            struct ofp_list idle; /* in endpoint->idle_uninserted, the one that has been idle longest first */
        };
    };
    uint64_t asked_since;            /* time of the first failed attempt; 0: none since it was up or lost */
    uint64_t ask_until;              /* when the attempts end; 0: not known yet */
    struct ofp_list awaiting;        /* waiting requests of ofp_reach_request, by their node */
    struct ofpi_peer_counts *counts; /* its own, or those of the endpoint's other peers; base/page.h */
    struct ofpi_flush_part *flushes; /* parts of flushes that wait for this peer, in their order; NULL: none */
};

_Static_assert(offsetof(struct ofpi_peer, unexpected) == offsetof(struct ofpi_peer, delay.spare) &&
                   offsetof(struct ofpi_peer, idle) == offsetof(struct ofpi_peer, again.spare) &&
                   sizeof(struct ofp_list) <= sizeof(((struct ofp_timer *)0)->spare),
               "in the spare words");
_Static_assert(sizeof(struct ofpi_peer) <= 312, "a peer over tcp stays below 1 KiB: tests/stress");

static inline struct ofpi_endpoint *ofpi_endpoint_of_peer(const struct ofp_peer *peer)
{
    return (struct ofpi_endpoint *)peer->endpoint;
}
static inline enum ofpi_departure ofpi_departure_of_peer(const struct ofpi_peer *peer)
{
    return peer->member ? peer->member->departed : OFPI_STAYS;
}
/* Whether the peer is up in the incarnation of that number; no incarnation has the number 0. */
static inline bool ofpi_peer_is_in(const struct ofpi_peer *peer, uint32_t number)
{
    return peer->base.state == OFP_PEER_UP && peer->number == number;
}
/* Size of the transport's private part of a peer. The hooks' private parts follow it. */
static inline size_t ofpi_peer_compute_private_size(const struct ofp_endpoint *endpoint)
{
    return (endpoint->ops->peer_size + 15) & ~(size_t)15;
}
/* The peer object of an address vector index; NULL: there is none. */
static inline struct ofpi_peer *ofpi_peer_find_at(const struct ofpi_endpoint *endpoint, uint32_t index)
{
    uint32_t place = ofpi_index_of_id(index);
    struct ofpi_peer *peer = place < endpoint->peer_capacity ? endpoint->peers[place] : NULL;

    return peer && peer->base.index == index ? peer : NULL;
}

#endif
