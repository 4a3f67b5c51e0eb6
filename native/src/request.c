/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: an operation with its completion in place of a queue entry.
 *
 * A request belongs to its domain and returns to the domain's free list when it is both finished and released. The
 * state is stored last when it finishes, so that other threads may look at it without the lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "domain.h"

#define CHUNK_REQUESTS 64

static int more_requests(struct ofpi_domain *domain)
{
    struct ofp_request *chunk = calloc(CHUNK_REQUESTS, sizeof(*chunk));
    void **chunks = realloc(domain->request_chunks, (domain->request_chunk_count + 1) * sizeof(*chunks));

    if (chunks)
        domain->request_chunks = chunks;
    if (!chunk || !chunks) {
        free(chunk);
        return -ENOMEM;
    }
    chunks[domain->request_chunk_count++] = chunk;
    for (int i = CHUNK_REQUESTS - 1; i >= 0; i--)
        ofp_list_prepend(&domain->free_requests, &chunk[i].node);
    return 0;
}

struct ofp_request *ofpi_request_take(struct ofpi_endpoint *endpoint)
{
    struct ofpi_domain *domain = endpoint->domain;
    struct ofp_request *request;

    if (__builtin_expect(ofp_list_empty(&domain->free_requests), 0) && more_requests(domain) != 0)
        return NULL;
    request = OFP_CONTAINER_OF(ofp_list_pop(&domain->free_requests), struct ofp_request, node);
    request->domain = domain;
    request->endpoint = endpoint;
    request->prepared = NULL;
    request->notify = request->released = request->many = request->given = false;
    request->generation = (request->generation + 1) % OFPI_REQUEST_GENERATIONS;
    ofp_store_relaxed(&request->state, OFPI_REQUEST_RUNNING);
    return request;
}

void ofpi_request_give(struct ofp_request *request)
{
    struct ofpi_domain *domain = request->domain;

    if (ofp_list_linked(&request->node))
        ofp_list_remove(&request->node);
    if (__builtin_expect(request->many, 0))
        ofpi_request_many_forget(request);
    free(request->prepared);
    request->prepared = NULL;
    request->given = true;
    /* The newest first: its memory is still in the cache. */
    ofp_list_prepend(&domain->free_requests, &request->node);
}

void ofpi_requests_free(struct ofpi_domain *domain)
{
    for (uint32_t i = 0; i < domain->request_chunk_count; i++) {
        struct ofp_request *chunk = domain->request_chunks[i];

        for (int k = 0; k < CHUNK_REQUESTS; k++) {
            free(chunk[k].prepared);
            if (chunk[k].many)
                ofpi_request_many_forget(&chunk[k]);
        }
        free(chunk);
    }
    free(domain->request_chunks);
}

void ofpi_request_finish(struct ofp_request *request, const struct ofp_completion *completion)
{
    if (__builtin_expect(request->many, 0) && !ofpi_request_many_finish(request, completion))
        return;
    request->completion = *completion;
    /* Pairs with the load-acquire in ofp_request_finished: the completion is there when the state says so. */
    ofp_store_release(&request->state, OFPI_REQUEST_FINISHED);
    if (request->released) {
        ofpi_request_give(request);
    } else if (request->notify) {
        struct ofp_cq *cq = request->endpoint->rx_cq ? request->endpoint->rx_cq : request->endpoint->tx_cq;

        ofp_list_append(&cq->finished, &request->node);
        ofpi_cq_notify(cq);
    }
}

static int result_of(const struct ofp_request *request) { return request->completion.error ? 2 : 1; }

/* ---------------------------------------------------------------------------------------------------------- start */

static bool has_room(const void *argument)
{
    const struct ofpi_endpoint *endpoint = argument;

    return endpoint->in_flight < endpoint->tx_size || endpoint->closing;
}

/* Start, and with a full transmit queue make room first. */
int ofpi_request_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op)
{
    int result = ofpi_endpoint_post(endpoint, op);

    while (__builtin_expect(result == -EAGAIN, 0)) {
        bool expired;

        endpoint->waiting_for_room++;
        result = ofpi_wait(endpoint->domain, has_room, endpoint, -1, &expired);
        endpoint->waiting_for_room--;
        if (result <= 0)
            return result ? result : -EAGAIN;
        if (endpoint->closing)
            return -ECANCELED;
        result = ofpi_endpoint_post(endpoint, op);
    }
    return result;
}

static ofp_request_t request_start(struct ofpi_endpoint *handle, struct ofp_operation *op)
{
    struct ofpi_endpoint *endpoint;
    struct ofp_request *request;
    int result = ofpi_domain_enter(handle->domain);

    if (result)
        return result;
    endpoint = handle->behind;
    request = ofpi_request_take(endpoint);
    result = -ENOMEM;
    if (request) {
        op->context = (uint64_t)(uintptr_t)request;
        op->flags |= OFPI_REQUEST;
        if (op->flags & OFP_MULTI_RECV)
            ofpi_request_many_start(request);
        result = ofpi_request_post(endpoint, op);
        if (result)
            ofpi_request_give(request);
    }
    /* A send that is over already needs no request. */
    if (result == 0 && !ofpi_operation_is_receive(op) && ofp_load_relaxed(&request->state) == OFPI_REQUEST_FINISHED &&
        !request->completion.error)
        ofpi_request_give(request);
    else if (result == 0)
        goto running;
    ofpi_domain_leave(endpoint->domain);
    return result;
running:
    ofpi_domain_leave(endpoint->domain);
    return ofpi_request_handle(request);
}

ofp_request_t ofp_request_start(struct ofp_endpoint *handle, const struct ofp_operation *operation)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofp_operation op = *operation;

    if (op.flags & ~(uint64_t)OFP_OPERATION_FLAGS)
        return -EINVAL;
    if (!ofpi_operation_is_receive(&op))
        op.flags = ofpi_send_flags(endpoint, &op);
    return request_start(endpoint, &op);
}

ofp_request_t ofp_request_tsend(struct ofp_endpoint *handle, uint32_t region, uint64_t offset, uint64_t length,
                                uint32_t peer, uint64_t tag)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofp_operation op = {.op = OFP_TSEND,
                               .peer = peer,
                               .flags = endpoint->tx_flags,
                               .tag = tag,
                               .offset = offset,
                               .length = length,
                               .region = region};

    return request_start(endpoint, &op);
}

ofp_request_t ofp_request_trecv(struct ofp_endpoint *handle, uint32_t region, uint64_t offset, uint64_t length,
                                uint32_t peer, uint64_t tag, uint64_t ignore)
{
    struct ofp_operation op = {.op = OFP_TRECV,
                               .peer = peer,
                               .tag = tag,
                               .ignore = ignore,
                               .offset = offset,
                               .length = length,
                               .region = region};

    return request_start((struct ofpi_endpoint *)handle, &op);
}

ofp_request_t ofp_request_tsend_buffer(struct ofp_endpoint *endpoint, const void *buffer, uint64_t length,
                                       uint32_t peer, uint64_t tag)
{
    return ofp_request_tsend(endpoint, OFP_REGION_PROCESS, (uint64_t)(uintptr_t)buffer, length, peer, tag);
}

ofp_request_t ofp_request_trecv_buffer(struct ofp_endpoint *endpoint, void *buffer, uint64_t length, uint32_t peer,
                                       uint64_t tag, uint64_t ignore)
{
    return ofp_request_trecv(endpoint, OFP_REGION_PROCESS, (uint64_t)(uintptr_t)buffer, length, peer, tag, ignore);
}

ofp_request_t ofp_request_tsend_segment(intptr_t endpoint, intptr_t segment, uint32_t peer, uint64_t tag)
{
    const struct ofp_segment *memory = (const struct ofp_segment *)segment;

    return ofp_request_tsend((struct ofp_endpoint *)endpoint, memory->region, memory->offset, memory->length, peer,
                             tag);
}

ofp_request_t ofp_request_trecv_segment(intptr_t endpoint, intptr_t segment, uint32_t peer, uint64_t tag)
{
    const struct ofp_segment *memory = (const struct ofp_segment *)segment;

    return ofp_request_trecv((struct ofp_endpoint *)endpoint, memory->region, memory->offset, memory->length, peer, tag,
                             0);
}

ofp_request_t ofp_request_rma_segment(intptr_t handle, intptr_t segment, uint32_t peer, intptr_t target, uint16_t code)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    const struct ofp_segment *memory = (const struct ofp_segment *)segment;
    const struct ofp_remote_segment *remote = (const struct ofp_remote_segment *)target;
    struct ofp_operation op = {.op = code,
                               .peer = peer,
                               .offset = memory->offset,
                               .length = memory->length,
                               .region = memory->region,
                               .remote_offset = remote->offset,
                               .remote_key = remote->key};

    if (memory->length != remote->length)
        return -EINVAL;
    op.flags = ofpi_send_flags(endpoint, &op);
    return request_start(endpoint, &op);
}

/* ------------------------------------------------------------------------------------------------- test and wait */

int ofp_request_finished(ofp_request_t handle)
{
    struct ofp_request *request = ofpi_request_of(handle);

    /* Pairs with the store-release in ofpi_request_finish. */
    if (ofp_load_acquire(&request->state) != OFPI_REQUEST_FINISHED)
        return 0;
    return result_of(request);
}

int ofp_request_test(ofp_request_t handle)
{
    struct ofpi_domain *domain = ofpi_request_of(handle)->domain;
    int result = ofp_request_finished(handle);

    if (result)
        return result;
    result = ofpi_domain_enter(domain);
    if (result)
        return result;
    ofpi_progress(domain, false);
    ofpi_domain_leave(domain);
    return ofp_request_finished(handle);
}

bool ofpi_request_is_finished(const void *argument)
{
    const struct ofp_request *request = argument;

    return ofp_load_relaxed(&request->state) == OFPI_REQUEST_FINISHED;
}

int ofp_request_wait(ofp_request_t handle, int64_t timeout)
{
    struct ofp_request *request = ofpi_request_of(handle);
    struct ofpi_domain *domain = request->domain;
    bool expired;
    int result = ofp_request_finished(handle);

    if (result)
        return result;
    result = ofpi_domain_enter(domain);
    if (result)
        return result;
    result = -EINVAL;
    if (ofp_load_relaxed(&request->state) != OFPI_REQUEST_IDLE)
        result = ofpi_wait(domain, ofpi_request_is_finished, request, timeout, &expired);
    /* Outside the lock the domain may be closed, and the request with it. */
    if (result == 1)
        result = result_of(request);
    ofpi_domain_leave(domain);
    return result;
}

int ofp_request_finish(ofp_request_t handle) { return handle ? ofp_request_wait(handle, -1) : -EINVAL; }

struct many_condition {
    const ofp_request_t *requests;
    uint64_t count;
    uint64_t *finished; /* how many from the first on are known to have finished */
};

static bool all_finished(const void *argument)
{
    const struct many_condition *condition = argument;

    while (*condition->finished < condition->count &&
           ofpi_request_is_finished(ofpi_request_of(condition->requests[*condition->finished])))
        ++*condition->finished;
    return *condition->finished == condition->count;
}

static bool any_finished(const void *argument)
{
    const struct many_condition *condition = argument;

    for (uint64_t i = 0; i < condition->count; i++)
        if (ofpi_request_is_finished(ofpi_request_of(condition->requests[i])))
            return true;
    return false;
}

int ofp_requests_wait(const ofp_request_t *requests, uint64_t count, bool all, int64_t timeout)
{
    uint64_t known = 0;
    struct many_condition condition = {requests, count, &known};
    struct ofpi_domain *domain;
    bool expired;
    int result;

    if (!count)
        return 1;
    domain = ofpi_request_of(requests[0])->domain;
    for (uint64_t i = 1; i < count; i++)
        if (ofpi_request_of(requests[i])->domain != domain)
            return -EXDEV;
    result = ofpi_domain_enter(domain);
    if (result)
        return result;
    result = ofpi_wait(domain, all ? all_finished : any_finished, &condition, timeout, &expired);
    ofpi_domain_leave(domain);
    return result;
}

const struct ofp_completion *ofp_request_completion(ofp_request_t handle)
{
    return &ofpi_request_of(handle)->completion;
}

int ofp_request_notify(ofp_request_t handle)
{
    struct ofp_request *request = ofpi_request_of(handle);
    struct ofpi_domain *domain = request->domain;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    result = ofpi_request_is_finished(request);
    if (!result)
        request->notify = true;
    ofpi_domain_leave(domain);
    return result;
}

/* ---------------------------------------------------------------------------------------- cancel, claim, release */

/* A transport that cancels in its own time tells by the completion. */
static int outcome_of_cancel(struct ofp_request *request)
{
    bool expired;

    if (ofpi_wait(request->domain, ofpi_request_is_finished, request, -1, &expired) != 1)
        return -EAGAIN;
    return request->completion.error == ECANCELED ? 0 : -ENOENT;
}

int ofp_request_cancel(ofp_request_t handle)
{
    struct ofp_request *request = ofpi_request_of(handle);
    struct ofpi_endpoint *endpoint = request->endpoint;
    uint64_t context = (uint64_t)(uintptr_t)request;
    int result = ofpi_domain_enter(request->domain);

    if (result)
        return result;
    result = -ENOENT;
    if (request->many ? !ofpi_request_many_over(request) : !ofpi_request_is_finished(request)) {
        if (endpoint->receive_context)
            result = ofpi_receive_cancel(endpoint->receive_context, &endpoint->base, context, OFPI_REQUEST);
        if (result == -ENOENT)
            result = ofpi_peer_cancel(endpoint, context, OFPI_REQUEST);
        if (result == -EINPROGRESS)
            result = outcome_of_cancel(request);
    }
    ofpi_domain_leave(request->domain);
    return result;
}

int ofp_request_claim(ofp_request_t handle, uint32_t region, uint64_t offset, uint64_t length)
{
    struct ofp_request *request = ofpi_request_of(handle);
    struct ofpi_endpoint *endpoint = request->endpoint;
    struct ofp_operation op = {.op = request->completion.flags & OFP_COMPLETED_TAGGED ? OFP_TRECV : OFP_RECV,
                               .peer = OFP_PEER_ANY,
                               .flags = OFP_CLAIM | OFPI_REQUEST,
                               .context = (uint64_t)(uintptr_t)request,
                               .offset = offset,
                               .length = length,
                               .region = region};
    int result = ofpi_endpoint_enter(endpoint);

    if (result)
        return result;
    if (ofpi_request_is_finished(request) && request->completion.flags & OFP_COMPLETED_CLAIM) {
        ofp_store_relaxed(&request->state, OFPI_REQUEST_RUNNING);
        result = ofpi_endpoint_post(endpoint, &op);
        if (result)
            ofp_store_release(&request->state, OFPI_REQUEST_FINISHED);
    } else {
        result = -EINVAL;
    }
    ofpi_domain_leave(endpoint->domain);
    return result;
}

int ofp_request_unclaim(ofp_request_t handle)
{
    struct ofp_request *request = ofpi_request_of(handle);
    struct ofpi_endpoint *endpoint = request->endpoint;
    int result = ofpi_endpoint_enter(endpoint);

    if (result)
        return result;
    result = -EINVAL;
    if (ofpi_request_is_finished(request) && request->completion.flags & OFP_COMPLETED_CLAIM &&
        endpoint->receive_context) {
        request->completion.flags &= ~(uint64_t)OFP_COMPLETED_CLAIM;
        result = ofpi_receive_unclaim(endpoint->receive_context, &endpoint->base, (uint64_t)(uintptr_t)request);
    }
    ofpi_domain_leave(endpoint->domain);
    return result;
}

void ofp_request_release(ofp_request_t handle)
{
    struct ofp_request *request = ofpi_request_of(handle);
    struct ofpi_domain *domain = request->domain;

    if (ofpi_domain_enter(domain))
        return;
    if (request->many) {
        ofpi_request_many_release(request);
    } else if (ofp_load_relaxed(&request->state) == OFPI_REQUEST_RUNNING) {
        request->released = true;
        request->notify = false;
    } else {
        ofpi_request_give(request);
    }
    ofpi_domain_leave(domain);
}
