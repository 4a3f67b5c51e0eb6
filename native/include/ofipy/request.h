/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request tier: one request for one operation, its completion in the request instead of a queue.
 *
 * A handle names a slot and one use of it. It is never 0, and once the use is over (the completion was taken, or the
 * request abandoned) every function answers -ESTALE to it, in whatever domain the slot lives by then.
 */
#ifndef OFIPY_REQUEST_H
#define OFIPY_REQUEST_H

#include "ofp.h"

/*
 * Memory of requests whose owner, as an array of numpy, lives longer than they. Where it is longer than ofp_domain_keeps_above and
 * named by the number of such a region, the transport need not register it each time. ofp_region_close says that the owner
 * leaves, before it does. -EOPNOTSUPP: this transport registers nothing, or keeps nothing.
 */
int ofp_region_own(struct ofp_domain *domain, void *base, uint64_t length, uint32_t *region);
/* Bytes; UINT64_MAX: there is nothing to be gained. */
uint64_t ofp_domain_keeps_above(const struct ofp_domain *domain);

/* How ofp_request_start meets what stands in its way. */
enum {
    OFP_START_AT_ONCE = 1, /* another thread holds the domain: -ENOLCK, in place of waiting for it */
    OFP_START_BEYOND = 2, /* a full transmit queue takes as many operations once more, which wait here for their turn */
};

/*
 * Start an operation: 0 when a send-like one has finished within the call without error (no request is made), a request
 * (> 0), or a negative error when it was refused. With a full transmit queue it drives progress until there is room, for
 * `timeout` nanoseconds (negative: for ever) and at most a second: then -EAGAIN, or -EINTR on a signal; nothing was started.
 */
ofp_request_t ofp_request_start(struct ofp_endpoint *endpoint, const struct ofp_operation *operation, uint32_t how,
                                int64_t timeout);

/* 1 finished, 2 finished with an error, 0 not yet; looks only, without a lock. */
int ofp_request_finished(ofp_request_t request);
/*
 * 1 finished, 2 finished with an error; 0 one second or the time-out passed; -EINTR on a signal: the operation goes on.
 * -EINVAL: a prepared operation that was never started.
 */
int ofp_request_wait(ofp_request_t request, int64_t timeout);
/* Wait until all (any) of them have finished: 1, 0 or -EINTR as ofp_request_wait. A stale one counts as finished. */
int ofp_requests_wait(const ofp_request_t *requests, uint64_t count, bool all, int64_t timeout);
/*
 * Wait as ofp_request_wait, copy the completion and give the slot back, with one call: 1 when it was taken; `completion`
 * is written before another thread can find the request stale. 0, -EINTR, -EINVAL: the request stays as it is.
 *
 * A prepared operation, and one that holds a message (OFP_COMPLETED_CLAIM, or claimed), keeps its slot; so does one of a
 * multi-receive buffer before its last completion (OFP_COMPLETED_MULTI_RECV): it runs on, or has finished again when the
 * next completion is there already.
 */
int ofp_request_take(ofp_request_t request, int64_t timeout, struct ofp_completion *completion);
/* The same for one that has finished, when nobody else holds the domain; 0 otherwise. Never waits. */
int ofp_request_take_finished(ofp_request_t request, struct ofp_completion *completion);
/* The same after one round of progress. */
int ofp_request_take_at_once(ofp_request_t request, struct ofp_completion *completion);
/* Make progress for so many nanoseconds, or until it has finished: 1, otherwise 0. Never asleep, as ofp_cq_spin. */
int ofp_request_spin(ofp_request_t request, uint64_t duration);
/*
 * Ask for an entry in ofp_cq_finished and a wake-up of the queue's descriptor. 1: it is finished already, none comes.
 * -EINVAL: it was prepared, and not started. -ENOLCK: `at_once`, and somebody else holds the domain.
 */
int ofp_request_notify(ofp_request_t request, bool at_once);

/* Requests with `notify` set that have finished: takes up to `max` of them. */
int64_t ofp_cq_finished(struct ofp_cq *cq, ofp_request_t *requests, uint64_t max);
/* The same without progress, when nobody else holds the domain; -ENOLCK otherwise. Never waits. */
int64_t ofp_cq_take_finished(struct ofp_cq *cq, ofp_request_t *requests, uint64_t max);
/*
 * ofp_cq_arm where that is quickly done: 1: safe to sleep on the descriptor, armed now or still. 0: something may be there, or the
 * descriptor was never asked for: ofp_cq_arm tells. Without progress, when nobody else holds the domain; -ENOLCK otherwise. Never
 * waits.
 */
int ofp_cq_arm_at_once(struct ofp_cq *cq);
/*
 * Make progress for so many nanoseconds (0: once), or until ofp_cq_finished has something of one of the queues: 1, otherwise
 * 0. Never asleep, and nothing has to be armed for it: before a loop of events sleeps.
 */
int ofp_cq_spin(struct ofp_cq *const *queues, uint32_t count, uint64_t duration);

/*
 * 0: cancelled (it has finished as ECANCELED); -ENOENT: too late, or not cancellable; -EAGAIN: the transport was asked and
 * has not said within a second.
 */
int ofp_request_cancel(ofp_request_t request);
/*
 * A finished OFP_HOLD receive set a message aside. `claim` receives it into memory: 1: the completion, as of a receive, is in
 * `completion`, as of ofp_request_take; 0: the same request is running again, and ends with it. A message that was received
 * without an error is still the request's: `accept` says that the program has it. `discard` drops a message that was not
 * claimed; `unclaim` puts it back to where it was in the order of arrival, or gives it to the oldest matching posted receive.
 * After each of the last three the request is stale. accept: -ENOLCK: `at_once`, and somebody else holds the domain.
 */
int ofp_request_claim(ofp_request_t request, uint32_t region, uint64_t offset, uint64_t length,
                      struct ofp_completion *completion);
int ofp_request_accept(ofp_request_t request, bool at_once);
int ofp_request_discard(ofp_request_t request);
int ofp_request_unclaim(ofp_request_t request);
/*
 * The caller's interest ends; a message that it holds, claimed or not, goes back. Its payload may stay in the memory of the
 * claim, which is in use then until the message is gone. `cancel`: also that in the operation, as far as it
 * can be taken back; a multi-receive buffer always is. Never waits. 0: it is over, and so is the use of its memory. 1: it
 * runs on, and the handle is stale when it has finished. -OFP_ETHREAD: not from this thread; try again from the domain's.
 */
int ofp_request_abandon(ofp_request_t request, bool cancel);

/*
 * A request that finishes when the peer is connected, which begins now unless it has: at once when it is. While nobody is at its
 * address it is asked again, for `patience` nanoseconds from now and at least OFIPY_CONNECT_TIMEOUT. Cancelled or abandoned it
 * lengthens that no more, and a peer for which nothing waits is asked no more. -EOPNOTSUPP: type MSG.
 */
ofp_request_t ofp_reach_request(struct ofp_endpoint *endpoint, uint32_t peer, uint64_t patience);

/* Whether the endpoint has met the peer, which is still there: 1 or 0. -EOPNOTSUPP: type MSG. */
int ofp_peer_is_up(struct ofp_endpoint *endpoint, uint32_t peer);

/* Prepared operations: a request that keeps its record and is started again. */
ofp_request_t ofp_prepare(struct ofp_endpoint *endpoint, const struct ofp_operation *operation);
/* 0; -EBUSY while it runs; with a full transmit queue, and `how`, as ofp_request_start. */
int ofp_start(ofp_request_t request, uint32_t how, int64_t timeout);
/* In this order: how many were started, always a prefix; a negative error only when none was. */
int ofp_start_many(const ofp_request_t *requests, uint64_t count, uint32_t how, int64_t timeout);

#endif
