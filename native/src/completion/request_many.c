/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request of a multi-receive buffer: one operation with many completions. ofp_request_take reads one completion.
 * After it the request is FINISHED again at once if there is a next completion, otherwise RUNNING. The completion with
 * OFP_COMPLETED_MULTI_RECV is the last one, and reading it frees the request.
 */
#include "completion/request_many.h"

#include "base/check.h"
#include "completion/entries.h"
#include "completion/request_slots.h"

static bool is_last_completion(const struct ofp_completion *completion)
{
    return completion->flags & OFP_COMPLETED_MULTI_RECV;
}

static struct ofpi_entry *pop_later_entry(struct ofp_request *request)
{
    struct ofp_list *node = ofp_list_pop(&request->later);

    return node ? OFP_CONTAINER_OF(node, struct ofpi_entry, node) : NULL;
}

void ofpi_request_many_start(struct ofp_request *request)
{
    request->many = true;
    ofp_list_init(&request->later);
}

bool ofpi_request_many_is_over(const struct ofp_request *request)
{
    const struct ofp_list *newest = request->later.previous;

    if (newest != &request->later)
        return is_last_completion(&OFP_CONTAINER_OF(newest, const struct ofpi_entry, node)->completion);
    return ofp_load_relaxed(&request->state) == OFPI_REQUEST_FINISHED && is_last_completion(&request->completion);
}

bool ofpi_request_many_complete(struct ofp_request *request, const struct ofp_completion *completion)
{
    struct ofpi_entry *later;

    if (request->released) {
        if (is_last_completion(completion))
            ofpi_request_free(request);
        return false;
    }
    if (ofp_load_relaxed(&request->state) != OFPI_REQUEST_FINISHED)
        return true;
    later = ofpi_entry_store(request->domain, completion);
    if (later)
        ofp_list_append(&request->later, &later->node);
    return false;
}

void ofpi_request_many_advance(struct ofp_request *request)
{
    struct ofpi_entry *later = pop_later_entry(request);

    OFPI_CHECK(request->many && ofp_load_relaxed(&request->state) == OFPI_REQUEST_FINISHED);
    /* The request was in the queue's list of finished requests for the completion that has been read. */
    if (ofp_list_linked(&request->node))
        ofp_list_remove(&request->node);
    request->notify = false;
    if (later) {
        request->completion = later->completion;
        ofpi_reserve_free(&request->domain->entries, later);
    } else if (is_last_completion(&request->completion)) {
        ofpi_request_free(request);
    } else {
        ofp_store_relaxed(&request->state, OFPI_REQUEST_RUNNING);
    }
}

void ofpi_request_many_clear(struct ofp_request *request)
{
    struct ofpi_entry *later;

    while ((later = pop_later_entry(request)))
        ofpi_reserve_free(&request->domain->entries, later);
    request->many = false;
}

void ofpi_request_many_release(struct ofp_request *request)
{
    struct ofpi_entry *later;

    if (ofpi_request_many_is_over(request)) {
        ofpi_request_free(request);
        return;
    }
    while ((later = pop_later_entry(request)))
        ofpi_reserve_free(&request->domain->entries, later);
    if (ofp_list_linked(&request->node))
        ofp_list_remove(&request->node);
    request->notify = false;
    request->released = true;
    /* Later completions are discarded, and the last one frees the slot. */
    ofp_store_relaxed(&request->state, OFPI_REQUEST_RUNNING);
}
