/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives in flight: receives that the provider is filling. Each is matched with an announced message, or with a
 * message whose payload follows in a stream. A stream may also fill an unexpected message that no receive has matched
 * yet (receive_stream.c).
 *
 * From ofpi_inflight_start until receive_complete the provider reads and writes the public part. The core may end a
 * receive earlier, if its peer is lost or its endpoint closes. The receive context owns the objects. The domain's lock
 * is held.
 */
#ifndef OFPI_LENT_H
#define OFPI_LENT_H

#include "base/pool.h"
#include "match/receiver.h"

struct ofpi_unexpected;

struct ofpi_inflight {
    struct ofp_receive base; /* the public part; must be the first member */
    /*
     * The endpoint where the message arrived, and the peer that sent it; NULL until the message is known. The
     * provider link replaces base.endpoint and base.message.peer by those of a lane.
     */
    struct ofp_endpoint *endpoint;
    struct ofp_peer *peer;
    struct ofp_list of_peer; /* in ofpi_peer.receives; zero without a peer */
    struct ofpi_receive_context *context;
    struct ofpi_receiver receiver;
    bool dropped; /* the payload is discarded: the sender is notified, no completion is written */
    /*
     * The unexpected message that the provider fills, or NULL. While the receive is neither `matched` nor `dropped`,
     * the message is waiting or set aside in the context.
     */
    struct ofpi_unexpected *unexpected;
    /* The payload of `unexpected`; or, if `packs`, an owned buffer that the receiver's layout is filled from at the end. */
    struct iovec memory;
    bool matched; /* `receiver` receives the message when it is complete */
    bool packs;   /* without `memory.iov_base`: there was no memory for it */
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
 * Start the receive at the provider. The receiver, with its memory, moves into `receive`; NULL: the message is dropped.
 * The provider may complete the receive within this call, which frees it: do not touch `receive` afterwards.
 */
void ofpi_inflight_start(struct ofpi_inflight *receive, struct ofp_endpoint *endpoint,
                         const struct ofp_message *message, const struct ofpi_receiver *receiver);
/* Bind the receive to its message, and to the message's endpoint and peer. */
void ofpi_inflight_bind_message(struct ofpi_inflight *receive, struct ofp_endpoint *endpoint,
                                const struct ofp_message *message);
/* As ofpi_inflight_start, without the provider's receive_start: the stream already brings the payload. */
void ofpi_inflight_set_receiver(struct ofpi_inflight *receive, struct ofp_endpoint *endpoint,
                                const struct ofp_message *message, const struct ofpi_receiver *receiver);
/* `receive` fills an unexpected message, whose payload follows and whose memory is allocated. */
void ofpi_inflight_bind_unexpected(struct ofpi_inflight *receive, struct ofpi_unexpected *unexpected,
                                   struct ofp_endpoint *endpoint, const struct ofp_message *message);
/* Before the completion of a receive that packs: move the payload into the layout. Returns 0 or the error of the receive. */
int ofpi_inflight_unpack(struct ofpi_inflight *receive, int error);
/* Free the receive. The caller has written its completion and released its memory. */
void ofpi_inflight_free(struct ofpi_inflight_receives *inflight, struct ofpi_inflight *receive);

#endif
