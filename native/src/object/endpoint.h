/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's private part of an endpoint. The domain's lock guards all members. */
#ifndef OFPI_ENDPOINT_H
#define OFPI_ENDPOINT_H

#include "object/domain.h"
#include "object/operation.h"

struct ofpi_bounce;
struct ofpi_connection;
struct ofpi_hooks;
struct ofpi_peer;
struct ofpi_follower;

/* Operations that had not left before the endpoint closed; peer/unsent.h. */
struct ofpi_unsent {
    uint64_t count;
    uint64_t operations;            /* a bit 1 << enum ofp_operation_code for each kind among them */
    struct ofpi_unsent_peer *peers; /* owned */
    uint32_t peer_count, peer_capacity;
};

struct ofpi_endpoint {
    struct ofp_endpoint base; /* first: the provider's view */
    struct ofp_info info;     /* base.info */
    struct ofpi_domain *domain;
    /* The endpoint that operations on this handle use: itself, or that of an open alias. */
    struct ofpi_endpoint *behind;
    uint32_t aliases;     /* open aliases of this endpoint; open/alias.c */
    uint32_t sharers;     /* endpoints that use the receive context of this one */
    struct ofp_list node; /* in domain->endpoints, or in domain->receive_contexts */
    struct ofp_list flush_node;
    struct ofp_cq *tx_cq, *rx_cq;
    struct ofp_av *av;        /* NULL for type MSG */
    struct ofpi_hooks *hooks; /* owned; NULL: none */
    struct ofpi_receive_context *receive_context;
    /* The owner of `receive_context`, if that is shared; NULL: this endpoint. Not owned. */
    struct ofpi_endpoint *shared;
    struct ofpi_peer **peers; /* by address vector index without its generation; peer->base.index has the whole index */
    uint32_t peer_capacity;
    uint32_t unknown_sender_count;
    /* Addresses of senders without an entry in `av`; created for the first one. */
    struct ofpi_av_table *unknown_sender_addresses;
    struct ofpi_peer **unknown_senders;
    struct ofp_list backlogged;        /* peers with a backlog that can be posted now */
    struct ofp_list removed;           /* peers whose address left the vector, until they are freed: forget.c */
    struct ofp_list sourceless;        /* pending receives from any source, if the transport matches */
    uint32_t last_incarnation;         /* number of the last peer that came up; 0: none did */
    uint64_t last_receive;             /* sequence number of the last receive that was passed to the transport */
    struct ofpi_bounce *spare_bounces; /* bounce.c */
    uint64_t tx_flags, rx_flags, tx_size;
    uint64_t in_flight; /* pending operations, backlog included */
    uint64_t backlog_count;
    uint32_t selective_completion; /* OFP_SELECTIVE_… */
    /* The current post may be added to the backlog although the transmit queue is full; request_start.c. */
    bool posts_beyond;
    bool remote_events;        /* reads and writes of peers enter rx_cq, also without immediate data */
    bool lingers;              /* `unsent` counts operations that fail from now on */
    bool refuses;              /* refuse operations, also those that wait for space: the endpoint lingers or closes */
    bool closing;              /* operations that end from now on are cancelled; `refuses` is set too */
    bool draining;             /* closing, and ofp_endpoint_retire is still to be called */
    bool stopped;              /* each post must check why: `refuses` is set, or there is no memory for completions */
    uint32_t waiting_for_room; /* threads that wait for space in the transmit queue */
    bool ending;               /* type MSG: ofp_shutdown waits until the backlog is empty */
    bool batched;              /* the last post had OFP_MORE */
    bool work_is_stuck;        /* due work waits for space in the transmit queue; valid within ofpi_works_start */
    bool counted;              /* one of `counters` is not NULL; counter.c */
    uint32_t spare_bounce_count;
    struct ofp_counter *counters[OFP_COUNTER_CLASSES];
    struct ofp_eq *eq;                  /* may be NULL */
    struct ofpi_connection *connection; /* type MSG, owned; NULL otherwise */
    struct ofpi_follower *follower;     /* owned; NULL: the endpoint follows no roster */
    struct ofpi_counts *counts;         /* in the statistics page; owned; NULL: an alias */
    struct ofpi_unsent unsent;          /* freed with the endpoint, because it is read after retiring */
    /* Behind what every message uses. */
    struct ofp_list idle_uninserted; /* uninserted peers that are neither UP nor CONNECTING; peer/uninserted.h */
    struct ofp_timer forgetting;     /* runs when idle ones beyond the bound are due to be freed */
    uint32_t idle_uninserted_count;
    uint32_t forget_turns; /* how many of them `forgetting` may look at */
};

/* As ofpi_domain_enter; -ECANCELED also when the endpoint is closing. */
static inline int ofpi_endpoint_enter(struct ofpi_endpoint *endpoint)
{
    int result = ofpi_domain_enter(endpoint->domain);

    if (__builtin_expect(!result && endpoint->closing, 0)) {
        ofpi_domain_refuse(endpoint->domain);
        result = -ECANCELED;
    }
    return result;
}
/* True for the result of ofp_receive_context_open, which has no transmit side. */
static inline bool ofpi_endpoint_is_receive_only(const struct ofpi_endpoint *endpoint) { return !endpoint->tx_cq; }
/*
 * Whether its peers come up and are lost where the core hears of it before and after every message. A connection of type
 * MSG is one incarnation itself. A shared receive context has messages of several endpoints, each with its own peers.
 */
static inline bool ofpi_endpoint_has_incarnations(const struct ofpi_endpoint *endpoint)
{
    return endpoint->info.ep_types == OFP_EP_RDM && !endpoint->info.offloads_matching &&
           !ofpi_endpoint_is_receive_only(endpoint);
}
/*
 * The handle of a public call may be an alias. Default flags are the handle's; everything else is that of
 * `handle->behind`. The caller holds the lock.
 */
static inline bool ofpi_endpoint_is_alias(const struct ofpi_endpoint *handle) { return handle->behind != handle; }
/* Whether a send-like operation would be refused with -EAGAIN. */
static inline bool ofpi_endpoint_is_full(const struct ofpi_endpoint *endpoint)
{
    return __builtin_expect(endpoint->in_flight >= endpoint->tx_size, 0) &&
           !(endpoint->posts_beyond && endpoint->in_flight < 2 * endpoint->tx_size);
}
/*
 * The flags of a send-like operation, with those default flags that it may have. Its own completion level, if any,
 * replaces the default one.
 */
static inline uint64_t ofpi_send_flags(const struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    uint64_t flags = op->flags, defaults = endpoint->tx_flags & ofpi_row_of_operation(op)->flags;

    return flags | (flags & OFPI_LEVELS ? defaults & ~(uint64_t)OFPI_LEVELS : defaults);
}

#endif
