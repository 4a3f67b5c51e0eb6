/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and the slots that they live in. The domain's lock guards all, except where a remark says otherwise. */
#ifndef OFPI_REQUEST_SLOTS_H
#define OFPI_REQUEST_SLOTS_H

#include "object/endpoint.h"
#include "ofipy/request.h"

enum ofpi_request_state { OFPI_REQUEST_IDLE, OFPI_REQUEST_RUNNING, OFPI_REQUEST_FINISHED };

/*
 * A slot for requests, in use or in its domain's free list; request_slots.c. Its memory is never returned to the system, so
 * that any handle may be looked up at any time.
 */
struct ofp_request {
    struct ofp_completion completion;
    _Atomic uint32_t state;         /* enum ofpi_request_state; read without the lock */
    _Atomic uint32_t generation;    /* of its use: the upper half of the handle; read without the lock */
    uint32_t place;                 /* constant: the lower half of the handle */
    uint32_t runs;                  /* starts, over all uses: a waiter sees that what it waited for is over */
    struct ofp_list node;           /* free list, the queue's list of finished requests, or `awaiting` */
    struct ofpi_domain *domain;     /* the endpoint may be closed before the request is taken */
    struct ofpi_endpoint *endpoint; /* valid while running or prepared */
    struct ofp_operation *prepared; /* the record of a prepared operation, NULL otherwise */
    /* Of ofp_reach_request, until it finishes: the peer, whose `awaiting` it is in, and how long that is asked (ns). */
    struct ofpi_peer *awaited;
    uint64_t patient_until;
    bool notify, released;
    bool claimed; /* the request has claimed the message set aside for it: match/receive_claim.h */
    bool many;    /* of a multi-receive buffer: FINISHED means that a completion is there, maybe not the last */
    struct ofp_list later; /* completions behind the first; request_many.c. Zero unless `many` */
};

static inline ofp_request_t ofpi_handle_of_request(const struct ofp_request *request)
{
    return (ofp_request_t)ofp_load_relaxed(&request->generation) << 32 | request->place;
}
static inline bool ofpi_request_is_finished(const struct ofp_request *request)
{
    return ofp_load_relaxed(&request->state) == OFPI_REQUEST_FINISHED;
}

/* Finished; the message set aside for the request waits to be claimed, or was received and waits to be accepted. */
static inline bool ofpi_request_has_message(const struct ofp_request *request)
{
    return ofpi_request_is_finished(request) &&
           (request->completion.flags & OFP_COMPLETED_CLAIM || (request->claimed && !request->completion.error));
}

/* A running request; NULL: out of memory. Given back when it is both finished and released. */
struct ofp_request *ofpi_request_allocate(struct ofpi_endpoint *endpoint);
/* The use ends: its handle is stale. */
void ofpi_request_free(struct ofp_request *request);
/* The slot of a handle whose use has not ended, NULL otherwise. Without the lock it may end at any time. */
struct ofp_request *ofpi_request_find(ofp_request_t handle);
/* The same, with its domain's lock: 0, -ESTALE, or as ofpi_domain_enter_as. */
int ofpi_request_enter_as(ofp_request_t handle, bool at_once, struct ofp_request **request);
static inline int ofpi_request_enter(ofp_request_t handle, struct ofp_request **request)
{
    return ofpi_request_enter_as(handle, false, request);
}
/* Every handle of the domain is stale; other domains use the slots. */
void ofpi_requests_free(struct ofpi_domain *domain);

#endif
