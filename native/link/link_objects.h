/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What link keeps behind the core's objects. Everything is guarded by the lock of the domain, the engine's.
 *
 *     core's (outer)      link's private part                       what a provider sees (inner)
 *     domain              struct link_domain   ── devices ──▶       struct ofp_domain, one each
 *     endpoint            struct link_endpoint ── inner ────▶       struct ofp_endpoint, one each, its private part behind it
 *     peer                struct link_peer     ── ways ─────▶       struct ofp_peer, one each, its private part behind it
 *
 * Inner ones lie in the private part of the outer one, at the offsets of the set; so they live as long.
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
    uint8_t host[LINK_HOST_SIZE]; /* of this process; zeros: it cannot be told */
    uint8_t local_key[OFP_KEY_SIZE];
    bool has_local_key;
};

struct link_inner {
    struct ofp_endpoint base; /* first: the provider's view */
    struct ofp_endpoint *outer;
    uint32_t number; /* of the device */
    bool is_network; /* and not within the host */
};

struct link_index;

struct link_endpoint {
    const struct link_set *set;
    struct link_index *index;                  /* owned; NULL once it is closed */
    struct link_inner *inners[LINK_PARTS_MAX]; /* all inner ones: those within the host, then the networks */
    uint32_t near_count;                       /* within the host */
    uint64_t next_poll;                        /* ticks: when the networks are asked next */
    uint64_t busy_until;                       /* ticks: until then they are asked in every round */
};

/* One way to a peer. */
struct link_lane {
    struct ofp_peer base; /* first: the provider's view */
    struct ofp_peer *outer;
    bool reachable; /* the peer's address has an entry for it, which the provider reaches */
    bool failed;    /* it was tried in this incarnation */
};

struct link_peer {
    struct link_lane *chosen; /* that our operations take; NULL: none yet */
    /* That we wait for; NULL: none, or the peer has called and we wait for what becomes of that. */
    struct link_lane *trying;
    struct ofp_peer *outer;
    uint8_t identity[OFP_IDENTITY_SIZE]; /* zeros: not known */
    bool is_stated;                      /* it stands in the address; otherwise it was learned in this incarnation */
    bool stale;                          /* the address has changed since it was taken apart */
    bool keeps_calls;                 /* it is being lost, and a way by which it has called and is not up yet stays */
    bool process_gone;                /* a way that failed knows that the process is */
    bool absent;                      /* nobody is there, says one that failed … */
    bool refused;                     /* … and another one was lost: refused, or in vain */
    bool absent_here;                 /* nobody on this host, where the peer would be */
    int error;                        /* why the ways failed; positive */
    char *why;                        /* the same in words; owned, may be NULL */
    char *remedy;                     /* what to do about it; likewise */
    void *address;                    /* what the ways' addresses point into; owned */
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
