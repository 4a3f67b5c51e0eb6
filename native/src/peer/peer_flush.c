/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flushing: remote operations are known to be in the memory of their peers. Most transports complete a write when it is
 * there, so a flush only waits for the operations in flight. A transport that completes earlier says so (needs_flush);
 * the core then posts one write of no bytes behind the others, whose delivery confirms theirs. Nothing of this blocks
 * the backlog: later operations do not wait for a flush.
 */
#include "peer/peer_flush.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/page.h"
#include "completion/request_finish.h"
#include "object/domain.h"
#include "object/operation.h"
#include "object/owner.h"
#include "peer/backlog.h"
#include "progress/flush.h"
#include "progress/wait.h"

/* Owned by its parts: freed when the last one has ended. */
struct ofpi_flush {
    struct ofp_request *request; /* NULL: it was cancelled */
    struct ofpi_endpoint *endpoint;
    uint32_t waiting;                 /* parts that have not ended */
    struct ofp_completion completion; /* with the first error */
    struct ofpi_flush_part parts[];
};

/* --------------------------------------------------------------------------------------------------------- the end */

static void finish_flush_request(struct ofpi_flush *flush, const struct ofp_completion *completion)
{
    struct ofpi_domain *domain = flush->endpoint->domain;
    struct ofp_request *request = flush->request;

    flush->request = NULL;
    request->flushes = false;
    if (completion->error)
        flush->endpoint->counts->errors++;
    else
        flush->endpoint->counts->flushes++;
    ofpi_request_finish(request, completion);
    if (domain->leader || domain->followers)
        ofpi_domain_wake(domain);
}

static void end_flush(struct ofpi_flush *flush)
{
    if (flush->request)
        finish_flush_request(flush, &flush->completion);
    free(flush);
}

/* `source`: the peer, for the error's text. */
static void store_flush_error(struct ofpi_flush *flush, uint32_t source, int error, int provider_error)
{
    if (!error || flush->completion.error)
        return;
    flush->completion.error = error;
    flush->completion.provider_error = provider_error;
    flush->completion.source = source;
}

/* ------------------------------------------------------------------------------------------------------- its parts */

/* Append the confirmation to the backlog, since a provider's callback may be the caller. False: none is needed. */
static bool append_confirmation(struct ofpi_flush_part *part)
{
    struct ofpi_peer *peer = part->peer;
    static struct ofp_region *const no_region = NULL;
    struct ofp_remote_segment there = {0};
    struct iovec nothing = {0};
    /* The bit keeps ofp_cancel, whose contexts are those of applications, from finding it. */
    struct ofp_operation op = {.op = OFP_WRITE,
                               .peer = peer->base.index,
                               .flags = OFP_DELIVERY_COMPLETE | OFPI_REQUEST,
                               .context = (uint64_t)(uintptr_t)part};
    struct ofp_transfer transfer = {
        .op = &op, .iov = &nothing, .regions = &no_region, .iov_count = 1, .remote = &there, .remote_count = 1};
    const struct ofp_endpoint_ops *ops = peer->base.endpoint->ops;
    struct ofpi_pending *pending;
    int result;

    if (part->confirms || part->flush->completion.error || peer->base.state != OFP_PEER_UP || !ops->needs_flush ||
        !ops->needs_flush(&peer->base, &there))
        return false;
    there.length = 0;
    result = ofpi_backlog_append(peer, &transfer);
    if (result) {
        store_flush_error(part->flush, peer->base.index, -result, 0);
        return false;
    }
    pending = OFP_CONTAINER_OF(peer->backlog.previous, struct ofpi_pending, base.node);
    pending->confirms = true;
    pending->flush = part;
    ofpi_backlog_schedule(peer);
    part->confirms = true;
    part->waiting = 1;
    return true;
}

/* A part waits for nothing more: confirm it, or end it, and go on to its successor. */
static void advance_flushes(struct ofpi_flush_part *part)
{
    while (part && part->waiting == 0 && !append_confirmation(part)) {
        struct ofpi_flush_part *next = part->next;
        struct ofpi_flush *flush = part->flush;

        OFPI_CHECK(part->peer->flushes == part && flush->waiting);
        part->peer->flushes = next;
        if (--flush->waiting == 0)
            end_flush(flush);
        part = next;
        if (part)
            part->waiting--;
    }
}

void ofpi_flush_operation_ended(struct ofpi_flush_part *part)
{
    OFPI_CHECK(part->waiting);
    part->waiting--;
    advance_flushes(part);
}

void ofpi_flush_confirmed(struct ofpi_flush_part *part, int error, int provider_error)
{
    OFPI_CHECK(part->confirms);
    store_flush_error(part->flush, part->peer->base.index, error, provider_error);
    ofpi_flush_operation_ended(part);
}

void ofpi_peer_flushes_fail(struct ofpi_peer *peer, int error, int reason)
{
    for (struct ofpi_flush_part *part = peer->flushes; part; part = part->next)
        store_flush_error(part->flush, peer->base.index, error, reason);
}

/* Let the remote operations of a list refer to the part, unless an earlier flush waits for them already. */
static void mark_operations(struct ofpi_flush_part *part, const struct ofp_list *list)
{
    for (struct ofp_list *node = list->next; node != list; node = node->next) {
        struct ofpi_pending *pending = OFP_CONTAINER_OF(node, struct ofpi_pending, base.node);

        /* An earlier confirmation belongs to a flush that this one waits for. */
        if (pending->flushed || pending->confirms || !ofpi_operation_is_remote(&pending->base.operation))
            continue;
        pending->flushed = true;
        pending->flush = part;
        part->waiting++;
    }
}

static void start_flush_part(struct ofpi_flush *flush, struct ofpi_peer *peer)
{
    struct ofpi_flush_part *part = &flush->parts[flush->waiting++], **last = &peer->flushes;

    while (*last)
        last = &(*last)->next;
    *part = (struct ofpi_flush_part){.flush = flush, .peer = peer, .waiting = peer->flushes != NULL};
    *last = part;
    mark_operations(part, &peer->pendings);
    mark_operations(part, &peer->backlog);
}

/* ------------------------------------------------------------------------------------------------------ the request */

/* Whether anything may be in flight to the peer; a peer whose operations have all ended has nothing to flush. */
static bool has_anything_to_flush(const struct ofpi_peer *peer)
{
    return peer && (!ofp_list_empty(&peer->pendings) || !ofp_list_empty(&peer->backlog) || peer->flushes ||
                    peer->base.state == OFP_PEER_UP);
}

/* `only`: the one peer; NULL: all. */
static void start_flush(struct ofpi_flush *flush, struct ofpi_peer *only)
{
    struct ofpi_endpoint *endpoint = flush->endpoint;
    uint32_t count;

    /* Batched operations leave now. */
    ofpi_endpoint_flush(endpoint);
    if (has_anything_to_flush(only))
        start_flush_part(flush, only);
    for (uint32_t i = 0; !only && i < endpoint->peer_capacity; i++)
        if (has_anything_to_flush(endpoint->peers[i]))
            start_flush_part(flush, endpoint->peers[i]);
    /* This call is one more that the flush waits for, so that it does not end in the middle. */
    count = flush->waiting++;
    for (uint32_t i = 0; i < count; i++)
        advance_flushes(&flush->parts[i]);
    if (--flush->waiting == 0)
        end_flush(flush);
}

ofp_request_t ofpi_flush_start(struct ofpi_endpoint *endpoint, struct ofpi_peer *only)
{
    uint32_t room = only ? 1 : endpoint->peer_capacity;
    struct ofpi_flush *flush = calloc(1, sizeof(*flush) + room * sizeof(flush->parts[0]));
    struct ofp_request *request = flush ? ofpi_request_allocate(endpoint) : NULL;
    ofp_request_t handle;

    if (!request) {
        free(flush);
        return -ENOMEM;
    }
    handle = ofpi_handle_of_request(request);
    request->flushes = true;
    request->flush = flush;
    flush->request = request;
    flush->endpoint = endpoint;
    flush->completion = (struct ofp_completion){.source = OFP_PEER_UNKNOWN, .endpoint = endpoint->base.id};
    /* Its operations have ended with the loss, and what it had in its memory is of no use. */
    if (only && only->base.state == OFP_PEER_LOST)
        store_flush_error(flush, only->base.index, OFP_EPEERLOST, 0);
    start_flush(flush, only);
    return handle;
}

void ofpi_flush_cancel(struct ofp_request *request)
{
    struct ofpi_flush *flush = request->flush;
    struct ofp_completion completion = flush->completion;

    completion.error = ECANCELED;
    finish_flush_request(flush, &completion);
}
