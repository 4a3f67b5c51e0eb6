/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive context: posted receives and unexpected messages of one or more endpoints, and the matching between them.
 *
 * Caller holds the domain's lock for every function. The context owns posted receives and unexpected messages; a receive
 * that matched an announced message is lent to the provider until ofpi_receive_complete.
 *
 * Rules of matching (fi_tagged(3), fi_msg(3)):
 * - channel (messages, tagged, internal), source (exact or OFP_PEER_ANY), (tag ^ message tag) & ~ignore == 0;
 * - of the posted receives that match a message the one posted first wins, whatever mix of exact, masked and any-source;
 * - of the unexpected messages that match a receive the one that arrived first wins;
 * - a receive that was matched completes at the endpoint where its message arrived.
 * Cost: constant expected time for exact tags, named source or any, at any depth; masked receives by the number of
 * distinct masks; growth of the tables is incremental.
 */
#ifndef OFPI_RECEIVE_CONTEXT_H
#define OFPI_RECEIVE_CONTEXT_H

#include "ofipy/provider.h"

struct ofpi_domain;
struct ofpi_peer;
struct ofpi_receive_context;
struct ofpi_reserve;

struct ofpi_receive_context_attr {
    uint64_t unexpected_limit;   /* bytes that unexpected messages take, payload and all else */
    uint64_t announcement_limit; /* announced messages kept */
    uint64_t min_multi_recv;     /* multi-receive buffers with less room than this are released, bytes */
    /* Where completions go: ofpi_endpoint_complete. It must not call back into the context. */
    void (*complete)(struct ofp_endpoint *endpoint, uint64_t op_flags, struct ofp_completion *completion);
    struct ofpi_reserve *entries; /* where each completion to come is promised; outlives the context */
    struct ofpi_domain *domain;
    int (*start_timer)(struct ofpi_domain *domain, struct ofp_timer *timer); /* of the domain: ofpi_timer_start */
};

struct ofpi_receive_context_statistics {
    uint64_t posted_receives, unexpected_messages, unexpected_bytes, announced_messages;
    uint64_t linear_searches; /* searches with a mask beyond those that have an index */
};

uint64_t ofpi_receive_context_min_multi_recv(const struct ofpi_receive_context *context);
void ofpi_receive_context_set_min_multi_recv(struct ofpi_receive_context *context, uint64_t bytes);
int ofpi_receive_context_open(const struct ofpi_receive_context_attr *attr, struct ofpi_receive_context **context);
/* Frees whatever is left, without completions: drain first with ofpi_receive_context_drain. */
void ofpi_receive_context_close(struct ofpi_receive_context *context);
/* End every posted receive of this endpoint with `error`: no more messages will come. */
void ofpi_receive_context_end(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, int error);
/* End every posted receive and every receive under way of this endpoint with `error`; drop its unexpected messages. */
void ofpi_receive_context_drain(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, int error);

/* End every posted receive that names this source with `error`. */
void ofpi_receive_context_end_directed(struct ofpi_receive_context *context, uint32_t source, int error,
                                       int provider_error);

/* See struct ofp_services. */
int ofpi_message_arrived(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                         const struct ofp_message *message, const void *payload);
int ofpi_message_announced(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                           const struct ofp_message *message);
bool ofpi_receive_context_is_announce_only(const struct ofpi_receive_context *context);
void ofpi_receive_write(struct ofp_receive *receive, uint64_t offset, const void *data, uint64_t length);
struct ofp_receive *ofpi_receive_find(struct ofp_peer *peer, uint64_t id);
void ofpi_receive_complete(struct ofp_receive *receive, int error, int provider_error);

/*
 * The way to the peer is lost, or one of several (OFP_SPARE_WAY of its messages): receives under way from it end with `error`, its announced messages that nobody matched are
 * dropped (their payload is unreachable), whole unexpected messages stay. Costs by what there is of that peer.
 */
#define OFPI_EVERY_LANE UINT32_MAX
void ofpi_receive_context_peer_lost(struct ofpi_receive_context *context, struct ofpi_peer *peer, uint32_t lane,
                                    int error);

void ofpi_receive_context_statistics(const struct ofpi_receive_context *context,
                                     struct ofpi_receive_context_statistics *statistics);

#endif
