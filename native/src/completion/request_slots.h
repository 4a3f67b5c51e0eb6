/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and their slots. The domain's lock guards all members, unless a comment says otherwise. */
#ifndef OFPI_REQUEST_SLOTS_H
#define OFPI_REQUEST_SLOTS_H

#include "object/endpoint.h"
#include "ofipy/request.h"

struct ofpi_flush;
struct ofp_collective_state;

/* An object that a request owns besides its completion, and that is freed with the request: a collective. */
struct ofpi_kept {
    int (*start)(struct ofpi_kept *kept); /* of a prepared request: start it again; 0, or a negative error */
    void (*release)(struct ofpi_kept *kept);
    void (*query)(const struct ofpi_kept *kept, struct ofp_collective_state *state); /* while it runs */
};

enum ofpi_request_state { OFPI_REQUEST_IDLE, OFPI_REQUEST_RUNNING, OFPI_REQUEST_FINISHED };

/*
 * A slot for requests, in use or in its domain's free list; request_slots.c. Its memory is never returned to the
 * system, so that the lookup of a stale handle reads valid memory.
 */
struct ofp_request {
    struct ofp_completion completion;
    _Atomic uint32_t state;         /* enum ofpi_request_state; read without the lock */
    _Atomic uint32_t generation;    /* counts uses of the slot: the upper half of the handle; read without the lock */
    uint32_t place;                 /* constant: the lower half of the handle */
    uint32_t runs;                  /* counts starts, over all uses: a waiter detects that its operation has ended */
    struct ofp_list node;           /* free list, the queue's list of finished requests, or `awaiting` */
    struct ofpi_domain *domain;     /* not by way of `endpoint`, which may be closed before the request is read */
    struct ofpi_endpoint *endpoint; /* valid while running, prepared or with a message: ofp_endpoint_free */
    struct ofp_operation *prepared; /* the record of a prepared operation, NULL otherwise */
    struct ofpi_kept *kept;         /* owned; NULL: it has nothing */
    /*
     * Of ofp_reach_request, until it finishes: the peer, in whose list `awaiting` it is, and the deadline (clock, ns).
     */
    struct ofpi_peer *awaited;
    union {
        uint64_t patient_until;
        struct ofpi_flush *flush; /* `flushes` */
    };
    bool flushes; /* of ofp_flush_request, until it finishes */
    bool notify, released;
    bool claimed; /* the request has claimed the message set aside for it: match/receive_claim.h */
    bool many;    /* of a multi-receive buffer: FINISHED means that a completion can be read, maybe not the last one */
    struct ofp_list later; /* struct ofpi_entry: completions after the first; request_many.c. Zero unless `many` */
};

static inline ofp_request_t ofpi_handle_of_request(const struct ofp_request *request)
{
    return (ofp_request_t)ofp_load_relaxed(&request->generation) << 32 | request->place;
}
static inline bool ofpi_request_is_finished(const struct ofp_request *request)
{
    return ofp_load_relaxed(&request->state) == OFPI_REQUEST_FINISHED;
}

/* Whether the request is finished, and its set-aside message can be claimed, or was claimed and can be accepted. */
static inline bool ofpi_request_has_message(const struct ofp_request *request)
{
    return ofpi_request_is_finished(request) &&
           (request->completion.flags & OFP_COMPLETED_CLAIM || (request->claimed && !request->completion.error));
}

/* Allocate a running request. It is freed when it is both finished and released. NULL: out of memory. */
struct ofp_request *ofpi_request_allocate(struct ofpi_endpoint *endpoint);
/* End the use of the slot: the handle becomes stale. */
void ofpi_request_free(struct ofp_request *request);
/* The slot of a handle, NULL if the handle is stale. Without the lock the handle may become stale at any time. */
struct ofp_request *ofpi_request_find(ofp_request_t handle);
/* Find the slot, and acquire its domain's lock: 0, -ESTALE, or as ofpi_domain_enter_as. */
int ofpi_request_enter_as(ofp_request_t handle, bool at_once, struct ofp_request **request);
static inline int ofpi_request_enter(ofp_request_t handle, struct ofp_request **request)
{
    return ofpi_request_enter_as(handle, false, request);
}
/* The domain closes: make all its handles stale, and pass its slots on to other domains. */
void ofpi_requests_free(struct ofpi_domain *domain);

#endif
