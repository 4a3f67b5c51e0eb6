/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private parts that link has behind the core's objects. The lock of the outer domain guards all of them.
 *
 *     core's (outer)      link's private part                       what a provider sees (inner)
 *     domain              struct link_domain   ── devices ──▶       struct ofp_domain, one each
 *     endpoint            struct link_endpoint ── inner ────▶       struct ofp_endpoint, one each, its private part behind it
 *     peer                struct link_peer     ── lanes ────▶       struct ofp_peer, one each, its private part behind it
 *
 * Inner objects lie in the private part of the outer object, at the offsets that the set computes. They live as long
 * as the outer object.
 */
#ifndef LINK_OBJECTS_H
#define LINK_OBJECTS_H

#include "link/link_address.h"
#include "ofipy/services.h"
#include "link/link_set.h"

struct link_domain {
    const struct link_set *set;
    struct ofp_domain devices[LINK_PARTS_MAX];
    struct ofp_info infos[LINK_PARTS_MAX];
    uint8_t host[LINK_HOST_SIZE]; /* of this process; zeros if it is unknown */
    uint8_t local_key[OFP_KEY_SIZE];
    bool has_local_key;
};

struct link_inner {
    struct ofp_endpoint base; /* first member: the provider's view */
    struct ofp_endpoint *outer;
    uint32_t number; /* index of the device in the set */
    bool is_network; /* reaches other hosts */
};

struct link_index;

struct link_endpoint {
    const struct link_set *set;
    struct link_index *index;                  /* owned; NULL once the endpoint is closed */
    struct link_inner *inners[LINK_PARTS_MAX]; /* all inner endpoints: first those within the host, then the networks */
    uint32_t near_count;                       /* of `inners`: endpoints that reach this host only */
    uint64_t next_poll;                        /* ticks: when the networks are polled next */
    uint64_t busy_until;                       /* ticks: until then every round polls the networks */
};

/* One lane to a peer. base.state follows the states of a peer: CONNECTING and UP are active, LOST is ended. */
struct link_lane {
    struct ofp_peer base; /* first: the provider's view */
    struct ofp_peer *outer;
    bool reachable; /* the peer's address has an entry for this lane, and the provider can reach it */
    bool failed;    /* an attempt failed in this incarnation of the outer peer */
    bool heard;     /* it is `heard` of the outer peer */
};

struct link_peer {
    struct link_lane *chosen; /* the lane of our operations; NULL before one is UP. Constant until the peer is lost */
    /* The lane of our connection attempt. NULL if there is none, or if the peer initiated the connection. */
    struct link_lane *trying;
    struct link_lane *heard;     /* the lane by which messages of this incarnation arrive; NULL before the first */
    struct link_lane *successor; /* during a loss: the lane that begins the next incarnation, which stays UP */
    struct ofp_peer *outer;
    uint8_t identity[OFP_IDENTITY_SIZE]; /* zeros if it is unknown */
    bool is_stated;      /* the address contains the identity; otherwise it was learned in this incarnation */
    bool stale;          /* the address has changed since the lanes were set */
    bool chosen_by_call; /* the peer called by `chosen`, and so sends by it */
    bool keeps_calls;    /* during a loss: lanes by which the peer calls meanwhile stay CONNECTING */
    bool process_gone;   /* a failed lane reported that the peer's process has ended */
    bool absent;         /* a failed lane reported that nobody listens at the address */
    bool refused;        /* a failed lane reported another error */
    bool absent_here;    /* a lane within the host reported that nobody listens */
    bool deferred;       /* an attempt by a lane can be repeated, so no other lane is tried */
    int error;           /* why the lanes failed; positive errno */
    char *why;           /* description of `error`; owned, may be NULL */
    char *remedy;        /* remedy for the user; owned, may be NULL */
    void *address;       /* copy of the address, into which the lanes point; owned */
    struct ofp_other_address *others; /* owned */
};

static inline size_t link_size_compute_aligned(size_t size) { return (size + 15) & ~(size_t)15; }

static inline struct link_domain *link_domain_of(const struct ofp_domain *outer) { return outer->private; }
static inline struct link_endpoint *link_endpoint_of(const struct ofp_endpoint *outer) { return outer->private; }
static inline struct link_peer *link_peer_of(const struct ofp_peer *outer) { return outer->private; }
static inline struct link_inner *link_inner_find(const struct ofp_endpoint *outer, uint32_t number)
{
    char *private = outer->private;

    return (struct link_inner *)(void *)(private + link_endpoint_of(outer)->set->parts[number].endpoint_offset);
}
static inline struct link_lane *link_lane_find(const struct ofp_peer *outer, uint32_t number)
{
    char *private = outer->private;

    return (struct link_lane *)(void *)(private + link_endpoint_of(outer->endpoint)->set->parts[number].lane_offset);
}
static inline struct link_inner *link_inner_of(struct ofp_endpoint *inner) { return (struct link_inner *)inner; }
static inline struct link_lane *link_lane_of(struct ofp_peer *inner) { return (struct link_lane *)inner; }
static inline const char *link_name_of_lane(const struct link_lane *lane)
{
    return lane->base.endpoint->info->provider;
}

#endif
