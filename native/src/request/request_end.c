/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests end without reading their completion: cancel, claim, accept, discard, unclaim, abandon. */
#include "request/request_end.h"

#include <errno.h>

#include "base/check.h"
#include "completion/request_many.h"
#include "completion/request_slots.h"
#include "match/receive_claim.h"
#include "match/receive_post.h"
#include "object/owner.h"
#include "ofipy/request.h"
#include "operation/post.h"
#include "operation/receive_offloaded.h"
#include "peer/peer_connect.h"
#include "peer/peer_flush.h"
#include "peer/peer_post.h"
#include "progress/flush.h"
#include "progress/progress.h"
#include "request/request_wait.h"

/* Whether the request has set a message aside and not claimed it. */
static bool can_claim(const struct ofp_request *request)
{
    return ofpi_request_has_message(request) && !request->claimed;
}

/* 0, -ENOENT: too late, or -EINPROGRESS: the completion will report the result. */
static int cancel_operation(struct ofp_request *request)
{
    struct ofpi_endpoint *endpoint = request->endpoint;
    uint64_t context = (uint64_t)(uintptr_t)request;
    int result = -ENOENT;

    if (ofp_load_relaxed(&request->state) == OFPI_REQUEST_IDLE)
        return -ENOENT;
    /* A finished request may have outlived its endpoint. */
    if (request->many ? ofpi_request_many_is_over(request) : ofpi_request_is_finished(request))
        return -ENOENT;
    if (endpoint->closing)
        return -ENOENT;
    /* The other members rely on it: only its group can be broken. */
    if (request->kept)
        return -ENOENT;
    if (request->awaited) {
        ofpi_reach_cancel(request);
        return 0;
    }
    if (request->flushes) {
        ofpi_flush_cancel(request);
        return 0;
    }
    if (endpoint->receive_context)
        result = ofpi_receive_cancel(endpoint->receive_context, &endpoint->base, context, OFPI_REQUEST);
    if (result == -ENOENT)
        result = ofpi_peer_cancel(endpoint, context, OFPI_REQUEST);
    return result;
}

static int wait_for_cancel(struct ofp_request *request, ofp_request_t handle)
{
    if (ofpi_request_await(request, -1) != 1)
        return -EAGAIN;
    /* The lock was released during the wait: another thread may have read the completion. */
    return ofpi_handle_of_request(request) == handle && request->completion.error == ECANCELED ? 0 : -ENOENT;
}

int ofp_request_cancel(ofp_request_t handle)
{
    struct ofp_request *request;
    struct ofpi_domain *domain;
    int result = ofpi_request_enter(handle, &request);

    if (result)
        return result == -ESTALE ? -ENOENT : result;
    /* After a wait the slot may serve another request. */
    domain = request->domain;
    result = cancel_operation(request);
    if (result == -EINPROGRESS)
        result = wait_for_cancel(request, handle);
    ofpi_domain_leave(domain);
    return result;
}

/* Receive or drop the request's message: the same request runs again. */
static int claim_request_message(struct ofp_request *request, uint64_t flags, const struct ofp_segment *memory)
{
    struct ofp_operation op = {.op = request->completion.flags & OFP_COMPLETED_TAGGED ? OFP_TRECV : OFP_RECV,
                               .peer = OFP_PEER_ANY,
                               .flags = OFP_CLAIM | OFPI_REQUEST | flags,
                               .context = (uint64_t)(uintptr_t)request,
                               .offset = memory->offset,
                               .length = memory->length,
                               .region = memory->region};
    int result;

    if (!can_claim(request))
        return -EINVAL;
    OFPI_CHECK(ofpi_request_is_finished(request) && !request->released);
    /* Set the state before the post, which may complete the request. */
    ofp_store_relaxed(&request->state, OFPI_REQUEST_RUNNING);
    request->claimed = !(flags & OFP_DISCARD);
    result = ofpi_endpoint_post(request->endpoint, &op);
    if (result) {
        request->claimed = false;
        ofp_store_release(&request->state, OFPI_REQUEST_FINISHED);
    }
    return result;
}

int ofp_request_claim(ofp_request_t handle, uint32_t region, uint64_t offset, uint64_t length,
                      struct ofp_completion *completion)
{
    const struct ofp_segment memory = {.offset = offset, .length = length, .region = region};
    struct ofp_request *request;
    struct ofpi_domain *domain;
    int result = ofpi_request_enter(handle, &request);

    if (result)
        return result;
    domain = request->domain;
    result = claim_request_message(request, 0, &memory);
    if (!result && ofpi_request_is_finished(request)) {
        ofpi_request_read_completion(request, completion);
        result = 1;
    }
    ofpi_domain_leave(domain);
    return result;
}

int ofp_request_accept(ofp_request_t handle, bool at_once)
{
    struct ofp_request *request;
    struct ofpi_domain *domain;
    int result = ofpi_request_enter_as(handle, at_once, &request);

    if (result)
        return result;
    domain = request->domain;
    if (request->claimed && ofpi_request_has_message(request)) {
        struct ofpi_endpoint *endpoint = request->endpoint;

        /* NULL: the endpoint was closed and the message freed. */
        if (endpoint->receive_context)
            ofpi_receive_accept(endpoint->receive_context, &endpoint->base, (uint64_t)(uintptr_t)request);
        ofpi_request_free(request);
    } else {
        result = -EINVAL;
    }
    ofpi_domain_leave(domain);
    return result;
}

int ofp_request_discard(ofp_request_t handle)
{
    const struct ofp_segment nothing = {.region = OFP_REGION_PROCESS};
    struct ofp_request *request;
    int result = ofpi_request_enter(handle, &request);

    if (result)
        return result;
    /* Mark it released, so that the end of the discard frees the slot. */
    request->released = true;
    result = claim_request_message(request, OFP_DISCARD, &nothing);
    if (result)
        request->released = false;
    ofpi_domain_leave(request->domain);
    return result;
}

/*
 * Return the message, claimed or not, and release the request. 0: the request is freed. 1: the request is freed when
 * its memory is no longer in use, which may be within this call. Negative: nothing has changed.
 */
static int return_message(struct ofp_request *request)
{
    struct ofpi_endpoint *endpoint = request->endpoint;
    struct ofpi_unexpected *waiting = NULL;
    uint32_t state = ofp_load_relaxed(&request->state);
    int result;

    if (!endpoint->receive_context)
        return -EINVAL;
    /* The message may lie in the request's memory, and may match another receive within this call. */
    request->released = true;
    ofp_store_relaxed(&request->state, OFPI_REQUEST_RUNNING);
    result = ofpi_receive_unclaim(endpoint->receive_context, &endpoint->base, (uint64_t)(uintptr_t)request, &waiting);
    if (waiting)
        ofpi_offloaded_returned(&endpoint->base, waiting);
    if (!result)
        ofpi_request_free(request);
    if (result < 0) {
        request->released = false;
        ofp_store_release(&request->state, state);
    }
    return result;
}

int ofp_request_unclaim(ofp_request_t handle)
{
    struct ofp_request *request;
    struct ofpi_domain *domain;
    int result = ofpi_request_enter(handle, &request);

    if (result)
        return result;
    domain = request->domain;
    result = can_claim(request) ? return_message(request) : -EINVAL;
    ofpi_domain_leave(domain);
    return result;
}

/*
 * Return the request's message, if any, to its place in the order of arrival. True: the caller has nothing more to do.
 */
static bool return_message_if_any(struct ofp_request *request)
{
    int result = request->claimed || ofpi_request_has_message(request) ? return_message(request) : -ENOENT;

    if (result != -ENOMEM)
        return result >= 0;
    /* The request keeps its slot and the message until the domain closes: a later request in that slot would find the message. */
    request->released = true;
    ofp_store_relaxed(&request->state, OFPI_REQUEST_RUNNING);
    return true;
}

void ofpi_request_end_released(struct ofp_request *request)
{
    /* The receive was cancelled after a message had been matched to it. */
    if (!ofpi_request_has_message(request) || !return_message_if_any(request))
        ofpi_request_free(request);
}

static int abandon_request(struct ofp_request *request, ofp_request_t handle, bool take_back)
{
    if (return_message_if_any(request))
        return ofpi_handle_of_request(request) == handle;
    /* A request of ofp_reach_request or ofp_flush_request only waits for others, so it is always cancelled. */
    if (take_back || request->many || request->awaited || request->flushes)
        cancel_operation(request);
    if (request->many)
        ofpi_request_many_release(request);
    else if (ofp_load_relaxed(&request->state) == OFPI_REQUEST_RUNNING) {
        request->released = true;
        /* Flush batched operations: without a waiter nothing else may drive progress. */
        ofpi_endpoint_flush(request->endpoint);
    } else {
        ofpi_request_free(request);
    }
    /* Not stale: the operation continues, and its memory stays in use until its end. */
    return ofpi_handle_of_request(request) == handle;
}

int ofp_request_abandon(ofp_request_t handle, bool take_back)
{
    struct ofp_request *request;
    struct ofpi_domain *domain;
    int result = ofpi_request_enter(handle, &request);

    /* The handle is stale, its domain is closed, or it belongs to the parent process. */
    if (result)
        return result == -OFP_ETHREAD ? result : 0;
    domain = request->domain;
    request->notify = false;
    result = abandon_request(request, handle, take_back);
    ofpi_domain_leave(domain);
    return result;
}
