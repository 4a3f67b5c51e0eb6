/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's own view of a peer. The domain's lock guards all. */
#ifndef OFPI_PEER_H
#define OFPI_PEER_H

#include "base/ids.h"
#include "object/endpoint.h"

/* How the process of a job's rank ended, as far as anybody has told. */
enum ofpi_departure {
    OFPI_STAYS,
    OFPI_LEFT,
    OFPI_DIED,
};

/* A rank of a job, whose roster tells when its process ends; roster.c. */
struct ofpi_member {
    struct ofpi_peer *peer;
    uint32_t rank;
    bool awaits_departure;        /* receives that name it end once the roster has told how it ended */
    enum ofpi_departure departed; /* stays: a rank never comes back */
    struct ofp_timer ending;      /* runs while the peer is gone, and receives that name it wait before they end */
};

struct ofpi_peer {
    struct ofp_peer base;     /* first: the provider's view */
    struct ofp_list backlog;  /* operations in the order posted, until the transport takes them */
    struct ofp_list pendings; /* operations the provider has taken */
    struct ofp_list node;     /* in endpoint->backlogged */
    /* The receive context's messages and receives of this peer. A lost peer costs no more than their number. */
    struct ofp_list announced; /* kept messages whose payload it still holds: struct ofpi_unexpected.payload.of_peer */
    struct ofp_list receives;  /* under way: struct ofpi_inflight.of_peer */
    struct ofp_timer delay;    /* runs while a hook holds the head of the backlog back; `node` is in no list then */
    uint32_t sending;          /* of `pendings`, those that are no receives */
    bool fenced;               /* the head of the backlog waits until nothing is `sending`; `node` is in no list then */
    bool named;                /* a receive has named it, and may be posted still */
    bool gone; /* its process is known dead or replaced, it has not come up since, nor was its address inserted again */
    bool removed; /* its address left the vector */
    bool unsent;  /* endpoint->unsent names it */
    /* While nobody is there; peer_connect.c. */
    bool expected;              /* its address was inserted, and nobody has been there since: it is asked again */
    bool warned;                /* the log has said who is waited for */
    bool lengthened;            /* a request of ofp_reach_request waits longer than OFIPY_CONNECT_TIMEOUT, or has */
    struct ofpi_member *member; /* owned; NULL: no rank of a job */
    void *readdressed;          /* owned: base.address, when that is another than the one it was made with */
    /* While nobody is there. */
    struct ofp_timer again;   /* runs between two questions; the state is UNUSED then */
    uint64_t pause;           /* the next one */
    uint64_t asked_since;     /* the first question that nobody answered; 0: none since it was up or lost */
    uint64_t ask_until;       /* 0: not known yet */
    struct ofp_list awaiting; /* requests of ofp_reach_request, by their node */
};

static inline struct ofpi_endpoint *ofpi_endpoint_of_peer(const struct ofp_peer *peer)
{
    return (struct ofpi_endpoint *)peer->endpoint;
}
static inline enum ofpi_departure ofpi_departure_of_peer(const struct ofpi_peer *peer)
{
    return peer->member ? peer->member->departed : OFPI_STAYS;
}
/* Of a peer's private part the transport's, which the hooks' follows. */
static inline size_t ofpi_peer_compute_private_size(const struct ofp_endpoint *endpoint)
{
    return (endpoint->ops->peer_size + 15) & ~(size_t)15;
}
/* The peer object of an address vector index, NULL when there is none. */
static inline struct ofpi_peer *ofpi_peer_find_at(const struct ofpi_endpoint *endpoint, uint32_t index)
{
    uint32_t place = ofpi_index_of_id(index);
    struct ofpi_peer *peer = place < endpoint->peer_capacity ? endpoint->peers[place] : NULL;

    return peer && peer->base.index == index ? peer : NULL;
}

#endif
