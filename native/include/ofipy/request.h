/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: one request for one operation, whose completion is stored in the request instead of a queue.
 *
 * A handle identifies a request slot and one use of it. It is never 0. A use ends when the completion was read, or when
 * the request was abandoned; afterwards every function returns -ESTALE for the handle, even if another domain uses the
 * slot by then.
 */
#ifndef OFIPY_REQUEST_H
#define OFIPY_REQUEST_H

#include "ofp.h"

/*
 * Create a region for memory whose owner, such as a numpy array, lives longer than the requests that use it. If the
 * memory is longer than ofp_domain_keeps_above, and operations name it by this region's number, the transport need not
 * register it for each operation. Call ofp_region_close before the owner frees the memory. -EOPNOTSUPP: this transport
 * registers no memory, or does not cache registrations.
 */
int ofp_region_own(struct ofp_domain *domain, void *base, uint64_t length, uint32_t *region);
/* Bytes. ofp_region_own has a benefit for longer memory only; UINT64_MAX: for none. */
uint64_t ofp_domain_keeps_above(const struct ofp_domain *domain);

/* What ofp_request_start does when it cannot start the operation at once. */
enum {
    OFP_START_AT_ONCE = 1, /* return -ENOLCK if another thread holds the domain's lock, instead of waiting for it */
    OFP_START_BEYOND = 2,  /* accept up to tx_size operations beyond a full transmit queue; they wait in the backlog */
};

/*
 * Start an operation. Returns a request (> 0); 0 if a send-like operation has finished within the call without error,
 * and no request was created; or a negative error if it was refused. While the transmit queue is full the call makes
 * progress until there is space, for `timeout` nanoseconds (negative: for ever), but at most a second: then -EAGAIN.
 * -EINTR on a signal. In both cases nothing was started.
 */
ofp_request_t ofp_request_start(struct ofp_endpoint *endpoint, const struct ofp_operation *operation, uint32_t how,
                                int64_t timeout);

/* 1: finished; 2: finished with an error; 0: not yet. Makes no progress and acquires no lock. */
int ofp_request_finished(ofp_request_t request);
/*
 * Wait for a request. 1: finished; 2: finished with an error; 0: one second or the time-out has passed; -EINTR on a
 * signal: the operation continues. -EINVAL: a prepared operation that was never started.
 */
int ofp_request_wait(ofp_request_t request, int64_t timeout);
/*
 * Wait until all, or any, of the requests have finished: 1, 0 or -EINTR as ofp_request_wait. A stale handle counts as
 * finished.
 */
int ofp_requests_wait(const ofp_request_t *requests, uint64_t count, bool all, int64_t timeout);
/*
 * Wait as ofp_request_wait, copy the completion and free the slot, in one call. 1: `completion` was written; that
 * happens before another thread can find the handle stale. 0, -EINTR, -EINVAL: the request is unchanged.
 *
 * These requests keep their slot: a prepared operation; a receive that has set a message aside (OFP_COMPLETED_CLAIM),
 * or has claimed it; and a multi-receive buffer before its last completion (OFP_COMPLETED_MULTI_RECV). The last one
 * continues to run, or is finished again if its next completion is already available.
 */
int ofp_request_take(ofp_request_t request, int64_t timeout, struct ofp_completion *completion);
/* The same for a finished request, if no other thread holds the domain's lock; 0 otherwise. Never waits. */
int ofp_request_take_finished(ofp_request_t request, struct ofp_completion *completion);
/* As ofp_request_take_finished, after one round of progress. */
int ofp_request_take_at_once(ofp_request_t request, struct ofp_completion *completion);
/*
 * Make progress for `duration` nanoseconds, or until the request has finished: 1, otherwise 0. Never sleeps; as
 * ofp_cq_spin.
 */
int ofp_request_spin(ofp_request_t request, uint64_t duration);
/*
 * Request that ofp_cq_finished returns the request when it has finished, and that the queue's descriptor then becomes
 * readable. 1: the request has already finished, and neither happens. -EINVAL: it was prepared, and not started.
 * -ENOLCK: `at_once` is set, and another thread holds the domain's lock.
 */
int ofp_request_notify(ofp_request_t request, bool at_once);

/* Make progress, then return up to `max` finished requests for which ofp_request_notify was called. */
int64_t ofp_cq_finished(struct ofp_cq *cq, ofp_request_t *requests, uint64_t max);
/* The same without progress; -ENOLCK if another thread holds the domain's lock. Never waits. */
int64_t ofp_cq_take_finished(struct ofp_cq *cq, ofp_request_t *requests, uint64_t max);
/*
 * A quick form of ofp_cq_arm, without progress. 1: the descriptor is armed, and safe to sleep on. 0: completions may be
 * ready, or the descriptor was never requested; call ofp_cq_arm to find out. -ENOLCK: another thread holds the domain's
 * lock. Never waits.
 */
int ofp_cq_arm_at_once(struct ofp_cq *cq);
/*
 * Make progress for `duration` nanoseconds (0: once), or until ofp_cq_finished would return a request of one of the
 * queues: 1, otherwise 0. Never sleeps, and needs no armed queue. For event loops, before they sleep.
 */
int ofp_cq_spin(struct ofp_cq *const *queues, uint32_t count, uint64_t duration);

/*
 * 0: cancelled (the request has finished with ECANCELED); -ENOENT: too late, or not cancellable; -EAGAIN: the transport
 * was requested to cancel the operation, and has not answered within a second.
 */
int ofp_request_cancel(ofp_request_t request);
/*
 * What to do with a message that a finished OFP_HOLD receive has set aside.
 *
 * `claim` receives it into memory. 1: done, and `completion` contains the completion of a receive, as of
 * ofp_request_take. 0: the same request is running again, and finishes with that completion. A message that was
 * received without an error still belongs to the request until `accept`, by which the program confirms that it has the
 * message. -ENOLCK from `accept`: `at_once` is set, and another thread holds the domain's lock.
 *
 * `discard` drops a message that was not claimed. `unclaim` returns it to its place in the order of arrival, or to the
 * oldest posted receive that matches. After `accept`, `discard` and `unclaim` the handle is stale.
 */
int ofp_request_claim(ofp_request_t request, uint32_t region, uint64_t offset, uint64_t length,
                      struct ofp_completion *completion);
int ofp_request_accept(ofp_request_t request, bool at_once);
int ofp_request_discard(ofp_request_t request);
int ofp_request_unclaim(ofp_request_t request);
/*
 * Abandon a request: the caller no longer needs it. A message that it has set aside, claimed or not, is returned as by
 * `unclaim`. Its payload may stay in the memory of the claim, which then remains in use until the message is freed.
 * `cancel`: also cancel the operation if that is possible; for a multi-receive buffer it always is. Never waits. 0: the
 * operation has ended and no longer uses its memory. 1: it continues, and the handle becomes stale when it has
 * finished. -OFP_ETHREAD: wrong thread; try again from the domain's thread.
 */
int ofp_request_abandon(ofp_request_t request, bool cancel);

/*
 * Connect to the peer if that has not begun; returns a request that finishes when the peer is connected. While nothing
 * listens at the peer's address, the core retries for `patience` nanoseconds from now, and at least for
 * OFIPY_CONNECT_TIMEOUT. A cancelled or abandoned request no longer extends that time, and the core stops retrying for
 * a peer for which no request or operation waits. -EOPNOTSUPP: type MSG.
 */
ofp_request_t ofp_reach_request(struct ofp_endpoint *endpoint, uint32_t peer, uint64_t patience);

/*
 * Flush the remote operations (writes, reads, atomics) to a peer, or to all peers with OFP_PEER_ANY, that were posted
 * before. Returns a request that finishes when each of them has ended, and the bytes of those that succeeded are in the
 * peer's memory. An operation that failed is reported by its own completion only. The flush itself ends with an error
 * if a peer was lost meanwhile, or if its confirmation failed. Operations that are posted later do not wait for it.
 * Messages are not flushed, and deferred work only once it has started. Type MSG ignores `peer`. -EOPNOTSUPP: the
 * endpoint has no remote operations.
 */
ofp_request_t ofp_flush_request(struct ofp_endpoint *endpoint, uint32_t peer);

/* 1 if the peer is connected (state UP), otherwise 0. -EOPNOTSUPP: type MSG. */
int ofp_peer_is_up(struct ofp_endpoint *endpoint, uint32_t peer);

/*
 * Number of the peer's present incarnation; 0: it is not up. Each time that a peer of the endpoint comes up it gets the
 * next number, from 1 on. An operation with OFP_BOUND ends with OFP_EPEERLOST when the incarnation of that number is over,
 * also if it was before. -EOPNOTSUPP: types MSG and DGRAM, and transports that match receives themselves.
 */
int64_t ofp_peer_incarnation(struct ofp_endpoint *endpoint, uint32_t peer);

/* Prepare an operation: the request stores the record and can be started repeatedly. */
ofp_request_t ofp_prepare(struct ofp_endpoint *endpoint, const struct ofp_operation *operation);
/*
 * Start a prepared operation. 0: started; -EBUSY while it runs. A full transmit queue, and `how`: as ofp_request_start.
 */
int ofp_start(ofp_request_t request, uint32_t how, int64_t timeout);
/*
 * Start prepared operations in this order. Returns how many were started, always a prefix; a negative error only if
 * none was.
 */
int ofp_start_many(const ofp_request_t *requests, uint64_t count, uint32_t how, int64_t timeout);

#endif
