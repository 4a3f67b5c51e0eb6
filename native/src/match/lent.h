/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives under way: matched with a message that is announced, or that a stream brings, and lent to the provider, which
 * moves the payload. A stream may also fill a message that nobody has matched yet (receive_stream.c).
 *
 * From ofpi_inflight_start until the provider's receive_complete the provider reads and writes the public part; the core
 * may end one earlier when its peer or endpoint goes. Owned by the receive context; the domain's lock is held.
 */
#ifndef OFPI_LENT_H
#define OFPI_LENT_H

#include "base/pool.h"
#include "match/receiver.h"

struct ofpi_unexpected;

struct ofpi_inflight {
    struct ofp_receive base; /* first: the provider's view */
    /* Whose it is, once its message is known; base.endpoint and base.message.peer are those that its provider knows. */
    struct ofp_endpoint *endpoint;
    struct ofp_peer *peer;
    struct ofp_list of_peer; /* in ofpi_peer.receives; zero without a peer */
    struct ofpi_receive_context *context;
    struct ofpi_receiver receiver;
    bool dropped; /* nobody receives it: the sender is told, no completion is written */
    /* A kept message that a stream fills; it is in the context's hands, unless it is `matched` or `dropped`. */
    struct ofpi_unexpected *unexpected;
    struct iovec memory; /* of `kept` */
    bool matched;        /* `receiver` gets it when it is whole */
};

struct ofpi_inflight_receives {
    struct ofpi_pool pool;
    struct ofp_list list; /* all of them, by base.node */
};

void ofpi_inflight_open(struct ofpi_inflight_receives *inflight);
void ofpi_inflight_close(struct ofpi_inflight_receives *inflight);
/* NULL: out of memory. */
struct ofpi_inflight *ofpi_inflight_allocate(struct ofpi_inflight_receives *inflight,
                                             struct ofpi_receive_context *context);
/*
 * Hand it to the provider. The receiver, with its memory, moves into it; NULL: the message is dropped. The provider may
 * complete it within the call, so it may be gone afterwards.
 */
void ofpi_inflight_start(struct ofpi_inflight *receive, struct ofp_endpoint *endpoint,
                         const struct ofp_message *message, const struct ofpi_receiver *receiver);
/* Its message is known from now on. */
void ofpi_inflight_bind_message(struct ofpi_inflight *receive, struct ofp_endpoint *endpoint,
                                const struct ofp_message *message);
/* The same without the provider's receive_start: the payload is on its way. */
void ofpi_inflight_set_receiver(struct ofpi_inflight *receive, struct ofp_endpoint *endpoint,
                                const struct ofp_message *message, const struct ofpi_receiver *receiver);
/* The payload of a kept message, which has its memory, follows: `receive` moves it there. */
void ofpi_inflight_bind_unexpected(struct ofpi_inflight *receive, struct ofpi_unexpected *unexpected,
                                   struct ofp_endpoint *endpoint, const struct ofp_message *message);
/* Its end, once the completion is written and the memory released. */
void ofpi_inflight_free(struct ofpi_inflight_receives *inflight, struct ofpi_inflight *receive);

#endif
