/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions: from an entry of libfabric's queue to the end of an operation of the core. Called by progress,
 * cancellations and the sleep handshake, under the domain's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "ofipy/iov.h"

#define ENTRIES 16

static struct ofp_message build_message(const struct ofp_pending *pending, struct ofp_peer *peer,
                                        const struct lf_cq_entry *entry)
{
    bool tagged = ofp_operation_row(pending->operation.op)->channel == OFP_CHANNEL_TAGGED;

    /* A provider that does not report sources has matched the requested one. */
    if (!peer)
        peer = pending->peer;
    return (struct ofp_message){
        .peer = peer,
        .source = peer ? peer->index : OFP_PEER_UNKNOWN,
        .channel = ofp_operation_row(pending->operation.op)->channel,
        .has_data = (entry->flags & LF_REMOTE_CQ_DATA) != 0,
        .tag = tagged ? entry->tag : 0,
        .data = entry->data,
        .length = entry->length,
    };
}

/* End the operation of a block. The block is free for the next operation before the core is notified. */
static void complete_block(struct bridge_endpoint *self, struct bridge_block *block, struct ofp_peer *source,
                           const struct lf_cq_entry *entry, int error, int provider_error)
{
    struct ofp_peer *peer = block->peer;
    struct ofp_pending *pending = bridge_pending_of(block);
    bool is_send = block->is_send, is_completed = block->is_completed;

    if (pending && block->scattered && !(is_send && error))
        /* Scatter the data received in one piece to the user's pieces. */
        ofp_iov_scatter(pending->transfer.iov, pending->transfer.iov_count, 0, block->copy,
                        is_send ? pending->transfer.length : entry->length);
    bridge_block_free(self, block);
    /* The operation was flushed since the connection has ended: the core ends it, with the reason. */
    if (__builtin_expect(error == ECANCELED, 0) && self->connects) {
        self->flushed = true;
        pending = NULL;
    }
    if (is_send) {
        OFP_CHECK(self->sends > 0);
        self->sends--;
        bridge_peer_of(peer)->sends--;
        bridge_peer_of(peer)->completed -= is_completed;
        bridge_peer_of(peer)->reached = !error;
        bridge_peer_of(peer)->has_sent = bridge_peer_of(peer)->has_sent && !error;
    }
    if (!pending)
        return;
    if (is_send) {
        ofp_transfer_complete(pending, error, provider_error);
    } else {
        struct ofp_message message = build_message(pending, source, entry);
        /* A receive of no bytes was posted with one byte. */
        bool truncated = !error && entry->length > pending->transfer.length && !(pending->operation.flags & OFP_PEEK);
        struct ofp_offloaded offloaded = {.error = truncated ? OFP_ETRUNC : error, .provider_error = provider_error};

        ofp_offloaded_receive_complete(pending, &message, &offloaded);
    }
}

/* Report a peer's access to memory of this endpoint. */
static void report_remote(struct ofp_endpoint *endpoint, struct ofp_peer *source, const struct lf_cq_entry *entry)
{
    uint64_t flags = entry->flags & LF_REMOTE_READ ? OFP_COMPLETED_REMOTE_READ : OFP_COMPLETED_REMOTE_WRITE;

    if (entry->flags & LF_ATOMIC)
        flags |= OFP_COMPLETED_ATOMIC;
    if (entry->flags & LF_REMOTE_CQ_DATA)
        flags |= OFP_COMPLETED_REMOTE_CQ_DATA;
    ofp_remote_event(endpoint, source, NULL, flags, entry->data, entry->length);
}

static void handle_completion(struct ofp_endpoint *endpoint, struct lf_cq_entry *entry, uint64_t address, int error,
                              int provider_error)
{
    const uint64_t remote = LF_REMOTE_READ | LF_REMOTE_WRITE;
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct ofp_peer *source = NULL;

    if (__builtin_expect(self->buffers != NULL, 0) && bridge_context_is_buffer(self->buffers, entry->op_context)) {
        bridge_datagram_arrived(endpoint, entry, address, error);
        return;
    }
    if (entry->flags & (LF_RECV | remote) && endpoint->info->caps & OFP_CAP_SOURCE)
        source = bridge_sender_resolve(endpoint, entry, address);
    if (__builtin_expect(entry->flags & remote && !error, 0)) {
        report_remote(endpoint, source, entry);
        if (bridge_domain_of(endpoint->domain)->data_consumes_receives && entry->op_context)
            bridge_receive_start(endpoint, entry->op_context);
    } else if (entry->op_context) {
        complete_block(self, entry->op_context, source, entry, error, provider_error);
    } else if (error) {
        bridge_core->log(OFP_LOG_WARNING, BRIDGE_NAME, "%s: a short message was lost: %s", endpoint->info->provider,
                         bridge_domain_of(endpoint->domain)->library->strerror(error));
    }
}

/* A device error may have a text of its own; a code that equals the error adds nothing. */
static int resolve_provider_error(const struct bridge_endpoint *self, const struct lf_cq_error *failure)
{
    char words[128] = "";
    const char *text;

    if (!self->connects || !failure->provider_error || failure->provider_error == failure->error ||
        failure->provider_error == -failure->error)
        return failure->provider_error;
    text = self->cq->ops->strerror(self->cq, failure->provider_error, failure->error_data, words, sizeof(words));
    return text ? bridge_core->explain(text) : failure->provider_error;
}

/* False: there was no error entry. */
static bool read_error(const struct ofp_endpoint *endpoint, struct bridge_event *event)
{
    struct lf_cq *cq = bridge_endpoint_of(endpoint)->cq;
    struct lf_cq_error failure = {.source = LF_ADDR_NOTAVAIL};

    if (cq->ops->readerr(cq, &failure, 0) <= 0)
        return false;
    *event = (struct bridge_event){
        .entry = {.op_context = failure.op_context,
                  /* shm's claim data that they lack. */
                  .flags = failure.data ? failure.flags : failure.flags & ~LF_REMOTE_CQ_DATA,
                  .length = failure.length + failure.overflow,
                  .buffer = failure.buffer,
                  .data = failure.data,
                  .tag = failure.tag},
        .source = LF_ADDR_NOTAVAIL,
        .error = bridge_error_convert(failure.error),
        .provider_error = resolve_provider_error(bridge_endpoint_of(endpoint), &failure),
    };
    return true;
}

/* Read at most ENTRIES. Entries of a queue without tags are shorter and are read one by one; they have no sources. */
static ssize_t read_entries(const struct bridge_endpoint *self, struct lf_cq_entry *entries, uint64_t *sources,
                            size_t count)
{
    if (__builtin_expect(!self->connects, 1))
        return self->cq->ops->readfrom(self->cq, entries, count, sources);
    sources[0] = LF_ADDR_NOTAVAIL;
    return self->cq->ops->read(self->cq, entries, 1);
}

/* -------------------------------------------------------------------------------------------------------- deferring */

static int handle_deferred_events(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct bridge_event *events = self->deferred;
    uint32_t count = self->deferred_count;

    /* Handling a completion may cancel receives, which defers again. */
    self->deferred = NULL;
    self->deferred_count = self->deferred_capacity = 0;
    for (uint32_t i = 0; i < count; i++)
        handle_completion(endpoint, &events[i].entry, events[i].source, events[i].error, events[i].provider_error);
    free(events);
    return (int)count;
}

static bool reserve_deferred_event(struct bridge_endpoint *self)
{
    uint32_t capacity = self->deferred_capacity ? self->deferred_capacity * 2 : ENTRIES;
    struct bridge_event *events;

    if (self->deferred_count < self->deferred_capacity)
        return true;
    events = realloc(self->deferred, capacity * sizeof(*events));
    if (!events)
        return false;
    self->deferred = events;
    self->deferred_capacity = capacity;
    return true;
}

/* Read one completion. False: there is none. */
static bool read_completion(const struct ofp_endpoint *endpoint, struct bridge_event *event)
{
    ssize_t count;

    event->source = LF_ADDR_NOTAVAIL;
    event->error = event->provider_error = 0;
    count = read_entries(bridge_endpoint_of(endpoint), &event->entry, &event->source, 1);
    return count == 1 || (count == -LF_EAVAIL && read_error(endpoint, event));
}

bool bridge_queue_is_empty(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);

    if (!self->deferred_count && reserve_deferred_event(self) && read_completion(endpoint, self->deferred))
        self->deferred_count = 1;
    return !self->deferred_count;
}

int bridge_receive_cancel(struct ofp_endpoint *endpoint, struct ofp_pending *pending)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct bridge_block *block = (struct bridge_block *)(uintptr_t)pending->provider_data[0];
    struct bridge_event event;

    if (!self->ep)
        return 0;
    if (self->ep->ops->cancel(&self->ep->fid, &block->context) != 0)
        return -ENOENT;
    while (reserve_deferred_event(self) && read_completion(endpoint, &event)) {
        if (event.entry.op_context == block && event.error == ECANCELED) {
            bridge_block_free(self, block);
            return 0;
        }
        self->deferred[self->deferred_count++] = event;
    }
    return -EINPROGRESS;
}

void bridge_receive_failed(struct ofp_endpoint *endpoint, struct bridge_block *block, int error)
{
    const struct lf_cq_entry none = {.op_context = block, .tag = block->pending->operation.tag};

    complete_block(bridge_endpoint_of(endpoint), block, NULL, &none, error, 0);
}

void bridge_peek_read(struct ofp_endpoint *endpoint, const struct bridge_block *block)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct bridge_event event;

    while (reserve_deferred_event(self) && read_completion(endpoint, &event)) {
        if (event.entry.op_context == block) {
            handle_completion(endpoint, &event.entry, event.source, event.error, event.provider_error);
            return;
        }
        self->deferred[self->deferred_count++] = event;
    }
}

/* --------------------------------------------------------------------------------------------------------- progress */

int bridge_endpoint_progress(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    int handled = __builtin_expect(self->deferred_count, 0) ? handle_deferred_events(endpoint) : 0;
    struct lf_cq_entry entries[ENTRIES];
    uint64_t sources[ENTRIES];
    struct bridge_event failed;
    ssize_t count = read_entries(self, entries, sources, ENTRIES);

    if (__builtin_expect(count == -EAGAIN, 1))
        return handled;
    if (count == -LF_EAVAIL && read_error(endpoint, &failed)) {
        handle_completion(endpoint, &failed.entry, failed.source, failed.error, failed.provider_error);
        return handled + 1;
    }
    for (ssize_t i = 0; i < count; i++)
        handle_completion(endpoint, &entries[i], sources[i], 0, 0);
    return handled + (count > 0 ? (int)count : 0);
}
