/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of ofp_flush_request, which wait until the remote operations posted before them have ended and their bytes
 * are in the memory of the peers. The domain's lock is held.
 */
#ifndef OFPI_PEER_FLUSH_H
#define OFPI_PEER_FLUSH_H

#include "completion/request_slots.h"
#include "peer/pending.h"

struct ofpi_flush;

/*
 * The share of one peer in a flush, in the peer's chain `flushes`, in the order of the requests. It waits for its
 * predecessor in that chain, for the operations that refer to it, and for its confirmation. So flushes of a peer end in
 * their order.
 */
struct ofpi_flush_part {
    struct ofpi_flush_part *next; /* in peer->flushes */
    struct ofpi_flush *flush;
    struct ofpi_peer *peer;
    uint32_t waiting; /* how many of these have not ended; not 0 while in the chain */
    bool confirms;    /* the confirmation was appended to the backlog: a write of no bytes, delivery-complete */
};

/* Start a flush of one peer, or of all if `only` is NULL. Returns its request, or -ENOMEM. */
ofp_request_t ofpi_flush_start(struct ofpi_endpoint *endpoint, struct ofpi_peer *only);
/* Cancel a request that still waits: it finishes with ECANCELED. The operations that it waits for continue. */
void ofpi_flush_cancel(struct ofp_request *request);
/* An operation that refers to this part has ended, in success or not. */
void ofpi_flush_operation_ended(struct ofpi_flush_part *part);
/* The confirmation of this part has ended. */
void ofpi_flush_confirmed(struct ofpi_flush_part *part, int error, int provider_error);
/* The peer is lost, removed or closed: its flushes end with this error, as soon as their operations have ended. */
void ofpi_peer_flushes_fail(struct ofpi_peer *peer, int error, int reason);

#endif
