/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive context: posted receives and unexpected messages of one or more endpoints, and the matching between them.
 *
 * The caller of every function holds the domain's lock. The context owns posted receives, unexpected messages and
 * receives in flight. The provider may use a receive in flight until ofpi_receive_complete.
 *
 * Rules of matching (fi_tagged(3), fi_msg(3)):
 * - channel (messages, tagged, internal), source (exact or OFP_PEER_ANY), (tag ^ message tag) & ~ignore == 0;
 * - a message matches the oldest of the posted receives that fit, whether they are exact, masked or any-source;
 * - a receive matches the unexpected message that arrived first of those that fit;
 * - a matched receive completes at the endpoint where its message arrived.
 * Cost of a match: constant expected time for exact tags, with a named or any source, at any depth. With masks the cost
 * grows with the number of distinct masks. Growth of the tables is incremental.
 */
#ifndef OFPI_RECEIVE_CONTEXT_H
#define OFPI_RECEIVE_CONTEXT_H

#include "ofipy/provider.h"

struct ofpi_domain;
struct ofpi_peer;
struct ofpi_receive_context;
struct ofpi_reserve;

struct ofpi_receive_context_attr {
    uint64_t unexpected_limit;   /* bytes that unexpected messages use, payload and overhead */
    uint64_t announcement_limit; /* number of announced messages */
    uint64_t min_multi_recv;     /* a multi-receive buffer with less space than this is released, bytes */
    /* Delivers completions: ofpi_message_complete. It must not call back into the context. */
    void (*complete)(struct ofp_endpoint *endpoint, uint64_t op_flags, const struct ofp_message *message,
                     struct ofp_completion *completion);
    struct ofpi_reserve *entries; /* entries reserved for future completions; outlives the context */
    struct ofpi_domain *domain;
    void (*start_timer)(struct ofpi_domain *domain, struct ofp_timer *timer); /* of the domain: ofpi_timer_start */
};

struct ofpi_receive_context_statistics {
    uint64_t posted_receives, unexpected_messages, unexpected_bytes, announced_messages;
    uint64_t linear_searches; /* searches of the arrival order, for a mask that has no index */
};

uint64_t ofpi_receive_context_min_multi_recv(const struct ofpi_receive_context *context);
void ofpi_receive_context_set_min_multi_recv(struct ofpi_receive_context *context, uint64_t bytes);
int ofpi_receive_context_open(const struct ofpi_receive_context_attr *attr, struct ofpi_receive_context **context);
/* Free the context and its objects, without completions: call ofpi_receive_context_drain first. */
void ofpi_receive_context_close(struct ofpi_receive_context *context);
/* End every posted receive of this endpoint with `error`: no more messages will arrive. */
void ofpi_receive_context_end(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, int error);
/* End every receive of this endpoint, posted or in flight, with `error`; discard its unexpected messages. */
void ofpi_receive_context_drain(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, int error);

/* End every posted receive that names this source with `error`. */
void ofpi_receive_context_end_directed(struct ofpi_receive_context *context, uint32_t source, int error,
                                       int provider_error);

/* Whether such a receive is posted. */
bool ofpi_receive_context_names(const struct ofpi_receive_context *context, uint32_t source);
/* End those that are bound to an incarnation of the source. */
void ofpi_receive_context_end_bound(struct ofpi_receive_context *context, uint32_t source, int error,
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
/* How the payload has travelled, for the count of its message. */
void ofpi_receive_set_protocol(struct ofp_receive *receive, enum ofp_protocol protocol);

/*
 * The connection to the peer is lost. Receives in flight from the peer end with `error`. Its announced messages are
 * discarded, since their payload is unreachable; those that are set aside report `error` when they are claimed. Complete
 * unexpected messages stay, but those that arrived behind a discarded one leave their incarnation. The cost grows with
 * the number of the peer's receives and announced messages, and of all messages that arrived behind the latter.
 */
void ofpi_receive_context_peer_lost(struct ofpi_receive_context *context, struct ofpi_peer *peer, int error);

void ofpi_receive_context_statistics(const struct ofpi_receive_context *context,
                                     struct ofpi_receive_context_statistics *statistics);

#endif
