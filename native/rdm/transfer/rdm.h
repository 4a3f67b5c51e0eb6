/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of native/rdm/transfer. The domain's lock guards all of them.
 *
 * An endpoint owns its packet buffers, its credit pool and its paths. A peer refers to the path by which it is
 * connected. A path owns everything that waits on it: packets, controls, registrations, stored messages. A path
 * outlives its peer: after ofpi_rdm_path_abandon it stays in endpoint->paths, without a peer, until the channel
 * reports `closed`.
 */
#ifndef OFPI_RDM_H
#define OFPI_RDM_H

#include "meet/manager.h"
#include "ofipy/services.h"
#include "rdm/channel.h"
#include "rdm/transfer/credit.h"
#include "rdm/transfer/packet.h"

/* The beginning of an endpoint's private part; the provider's own part is behind it. */
struct ofpi_rdm_endpoint {
    struct ofpi_channel channel; /* first */
    struct ofp_endpoint *base;
    const struct ofp_core *core;
    const char *provider;
    uint64_t incarnation; /* random, constant */
    uint64_t
        own_request; /* random, constant: sent instead of `incarnation` in a request to our own address, to recognise it */
    uint64_t connect_timeout; /* ns */
    char *memory;             /* of all packets: first the receive buffers, then the send buffers */
    struct ofpi_packet *packets;
    struct ofp_list free; /* struct ofpi_packet: free send buffers */
    struct ofpi_credit_pool pool;
    struct ofp_list paths;     /* struct ofpi_rdm_path, from its creation until the channel reports `closed` */
    struct ofp_list scheduled; /* paths that the next round of progress advances */
    /* Runs while this side sleeps and requests of peers wait: no event tells when there is memory or space for them. */
    struct ofp_timer retry_timer;
    uint64_t retry_pause; /* ns; it grows as long as none of them is handled */
    bool open;
    bool urgent; /* a path must be advanced although no event follows: do not sleep */
};

/*
 * The beginning of a peer's private part. It is zeroed when the peer connects again; ofpi_rdm_peer_disconnect
 * releases everything.
 */
struct ofpi_rdm_peer {
    struct ofp_peer *base;
    struct ofpi_meeting meeting;
    struct ofpi_rdm_path *path;  /* the path to the peer; NULL if there is none */
    struct ofpi_rdm_path *other; /* the other end of the path, if the endpoint is its own peer */
    struct ofp_timer timer;
};

enum ofpi_rdm_path_state {
    OFPI_RDM_BEGUN,  /* not up yet; arrived requests wait until the core knows the peer */
    OFPI_RDM_UP,     /* packets may leave */
    OFPI_RDM_OVER,   /* nothing leaves any more; what arrived is still handled */
    OFPI_RDM_DROPPED /* abandoned: it has no peer; the channel has yet to report `closed` */
};

/*
 * A path as its user sees it. `state` only grows. The lists contain objects that begin with their node; those that
 * were allocated are freed with the path. While the path is UP: in_flight <= path_window, and the peer owns
 * base.peer->path or base.peer->other.
 */
struct ofpi_rdm_path {
    struct ofpi_path base; /* first; base.peer is NULL once the path is abandoned */
    struct ofpi_rdm_endpoint *endpoint;
    struct ofp_list node;      /* endpoint->paths */
    struct ofp_list scheduled; /* endpoint->working, or in no list */
    uint8_t state;             /* enum ofpi_rdm_path_state */
    bool opened;               /* this side requested it */
    bool put_off;              /* the peer has requested another one, and was put off */
    bool announce;             /* the peer's core has no space for eager payload: announce all messages */
    bool reported;             /* the failure in `error` has been handled */
    uint32_t packet_size;      /* the smaller limit of both sides */
    uint32_t in_flight;        /* packets, gets and puts that the channel has; at most path_window */
    struct ofpi_credits credits;
    struct ofp_list waiting;   /* struct ofpi_packet: requests of the peer that wait for space or credit, in order */
    struct ofp_list controls;  /* struct ofpi_rdm_control: packets without payload that wait for credit, in order */
    struct ofp_list announced; /* struct ofpi_rdm_unexpected: messages that no receive has matched */
    struct ofp_list pushes;    /* struct ofpi_rdm_push: messages that leave in fragments */
    struct ofp_list moves;     /* struct ofpi_rdm_move: gets, puts and atomics */
    struct ofp_list registrations; /* struct ofpi_rdm_registration: memory that is registered with the channel */
    struct ofp_pending *parting;   /* the remote operation whose parts are being sent; others wait */
    int error;                     /* positive errno of a failure; 0: none */
    const char *why;               /* string literal that describes `error`, or NULL */
    uint64_t incarnation;          /* incarnation of the peer at its other end */
    struct ofpi_meeting_end end;   /* why the path is over; set while it is drained */
};

/* Indices of a pending operation in provider_data. */
enum { OFPI_RDM_STATE, OFPI_RDM_REGISTRATION, OFPI_RDM_PUSH, OFPI_RDM_RECEIVE };
/* Indices for RMA and atomics in parts: bytes sent, parts without an answer, the first error (reason << 32 | error). */
enum { OFPI_RDM_SENT = 1, OFPI_RDM_PARTS, OFPI_RDM_ERROR };
/* Values of OFPI_RDM_STATE: a packet of the peer is accepted only in the state that it belongs to. */
enum { OFPI_RDM_ANNOUNCED = 1, OFPI_RDM_PULLED, OFPI_RDM_MOVING, OFPI_RDM_ASKED };

static inline struct ofpi_rdm_endpoint *ofpi_rdm_endpoint_of(const struct ofp_endpoint *endpoint)
{
    return endpoint->private;
}
static inline struct ofpi_rdm_peer *ofpi_rdm_peer_of(const struct ofp_peer *peer) { return peer->private; }
static inline struct ofpi_rdm_path *ofpi_rdm_path_of(struct ofpi_path *path) { return (struct ofpi_rdm_path *)path; }
/*
 * The core knows that the peer is up, and will be notified of its loss. Only then does it receive what the path
 * brings.
 */
static inline bool ofpi_rdm_is_known(const struct ofpi_rdm_path *path)
{
    return path->base.peer && path->base.peer->state == OFP_PEER_UP;
}

#endif
