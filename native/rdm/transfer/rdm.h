/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of native/rdm/transfer. All are guarded by the domain's lock. */
#ifndef OFPI_RDM_H
#define OFPI_RDM_H

#include "meet/meet.h"
#include "ofipy/services.h"
#include "rdm/channel.h"
#include "rdm/transfer/credit.h"
#include "rdm/transfer/packet.h"

/* The beginning of an endpoint's private part; the provider's own is behind it. */
struct ofpi_rdm_endpoint {
    struct ofpi_channel channel; /* first */
    struct ofp_endpoint *base;
    const struct ofp_core *core;
    const char *provider;
    uint64_t incarnation;     /* random, constant */
    uint64_t own_request;     /* random, constant: shown in its place to our own address, by which we know ourselves */
    uint64_t connect_timeout; /* ns */
    char *memory;             /* of all packets: first those that are posted, then those to send */
    struct ofpi_packet *packets;
    struct ofp_list free; /* of struct ofpi_packet: to send */
    struct ofpi_credit_pool pool;
    struct ofp_list paths;     /* of struct ofpi_rdm_path, from their making until the channel has let go */
    struct ofp_list scheduled; /* those with something left to do */
    bool open;
    bool urgent; /* something is left to do that no arrival will tell of */
};

/* The beginning of a peer's private part. Zeroed when it connects again: `peer_down` leaves nothing here. */
struct ofpi_rdm_peer {
    struct ofp_peer *base;
    uint8_t meet;                /* enum ofpi_meet_state */
    struct ofpi_rdm_path *path;  /* by which it is met; NULL: none */
    struct ofpi_rdm_path *other; /* an endpoint that is its own peer: its other end */
    struct ofpi_backoff backoff;
    struct ofp_timer timer;
};

enum ofpi_rdm_path_state {
    OFPI_RDM_BEGUN,  /* not up yet; requests that come wait until the core knows the peer */
    OFPI_RDM_UP,     /* packets may leave */
    OFPI_RDM_OVER,   /* none do any more; what came is still read */
    OFPI_RDM_DROPPED /* nobody's; the channel has yet to let go */
};

/*
 * A path as its user sees it. The lists hold objects that begin with their node; those of malloc are freed with the
 * path.
 */
struct ofpi_rdm_path {
    struct ofpi_path base; /* first; base.peer is NULL once it is dropped */
    struct ofpi_rdm_endpoint *endpoint;
    struct ofp_list node;      /* endpoint->paths */
    struct ofp_list scheduled; /* endpoint->working, or in no list */
    uint8_t state;             /* enum ofpi_rdm_path_state */
    bool opened;               /* by us */
    bool announce;             /* the peer's core is full */
    bool reported;             /* that it is wrong */
    uint32_t packet_size;      /* the smaller of both */
    uint32_t in_flight;        /* packets, gets and puts that the channel has */
    struct ofpi_credits credits;
    struct ofp_list waiting;       /* struct ofpi_packet: requests of the peer's, in order */
    struct ofp_list controls;      /* struct ofpi_rdm_control: packets that wait for credit */
    struct ofp_list announced;     /* struct ofpi_rdm_unexpected: of messages that no receive has matched */
    struct ofp_list pushes;        /* struct ofpi_rdm_push: messages that leave in fragments */
    struct ofp_list moves;         /* struct ofpi_rdm_move: gets and puts */
    struct ofp_list registrations; /* struct ofpi_rdm_registration: memory that the channel knows */
    struct ofp_pending *parting;   /* the operation whose parts leave */
    int error;                     /* what is wrong with it; 0: nothing */
    const char *why;               /* literal */
    uint64_t incarnation;          /* of who is at its other end */
    struct ofpi_path_end end;      /* why it is over, while it is still read */
};

/* What a pending operation has in provider_data. */
enum { OFPI_RDM_STATE, OFPI_RDM_REGISTRATION, OFPI_RDM_PUSH, OFPI_RDM_RECEIVE };
/* RMA and atomics by parts: bytes sent, parts unanswered, the first error (reason << 32 | error). */
enum { OFPI_RDM_SENT = 1, OFPI_RDM_PARTS, OFPI_RDM_ERROR };
/* Values of OFPI_RDM_STATE, so that no packet is believed that does not fit. */
enum { OFPI_RDM_ANNOUNCED = 1, OFPI_RDM_PULLED, OFPI_RDM_MOVING, OFPI_RDM_ASKED };

static inline struct ofpi_rdm_endpoint *ofpi_rdm_endpoint_of(const struct ofp_endpoint *endpoint)
{
    return endpoint->private;
}
static inline struct ofpi_rdm_peer *ofpi_rdm_peer_of(const struct ofp_peer *peer) { return peer->private; }
static inline struct ofpi_rdm_path *ofpi_rdm_path_of(struct ofpi_path *path) { return (struct ofpi_rdm_path *)path; }
/* The core was told that the peer is up, and will be told of its loss: only then may it hear what the path brings. */
static inline bool ofpi_rdm_is_known(const struct ofpi_rdm_path *path)
{
    return path->base.peer && path->base.peer->state == OFP_PEER_UP;
}

#endif
