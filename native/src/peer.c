/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers of an endpoint: made at first use, connected by the provider, lost and connected again. While a peer is not UP,
 * or the transport has no room, its operations wait in its backlog in the order posted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "event_queue.h"
#include "hooked.h"

static const char *const state_names[] = {
    [OFP_PEER_UNUSED] = "unused",
    [OFP_PEER_CONNECTING] = "connecting",
    [OFP_PEER_UP] = "up",
    [OFP_PEER_LOST] = "lost",
};

/* Row: from; column: to. Absent is an error of the provider. */
static const bool allowed[4][4] = {
    [OFP_PEER_UNUSED] = {[OFP_PEER_CONNECTING] = true},
    [OFP_PEER_CONNECTING] = {[OFP_PEER_UP] = true, [OFP_PEER_LOST] = true},
    [OFP_PEER_UP] = {[OFP_PEER_LOST] = true},
    [OFP_PEER_LOST] = {[OFP_PEER_CONNECTING] = true},
};

static struct ofpi_endpoint *endpoint_of(const struct ofp_peer *peer) { return (struct ofpi_endpoint *)peer->endpoint; }

/* `error`: why it is lost. */
static bool change_state(struct ofpi_peer *peer, enum ofp_peer_state state, int error)
{
    enum ofp_peer_state before = peer->base.state;

    OFPI_CHECK(ofpi_domain_is_held(endpoint_of(&peer->base)->domain));

    if (!allowed[before][state]) {
        ofpi_log(OFP_LOG_ERROR, peer->base.endpoint->info->provider, "peer %u: no way from %s to %s", peer->base.index,
                 state_names[before], state_names[state]);
        return false;
    }
    peer->base.state = state;
    if (__builtin_expect(endpoint_of(&peer->base)->hooks != NULL, 0))
        ofpi_hooks_peer_changed(peer, before, error);
    return true;
}

/* ---------------------------------------------------------------------------------------------------- finding one */

/* What is zeroed when it connects again. */
static size_t private_size(const struct ofp_endpoint *endpoint)
{
    const struct ofpi_hook_list *hooks = ((const struct ofpi_endpoint *)endpoint)->domain->hooks;

    return ofpi_peer_private_size(endpoint) + (hooks ? hooks->peer_size : 0);
}

static void hold_expired(struct ofp_timer *timer, uint64_t now);

static struct ofpi_peer *peer_new(struct ofpi_endpoint *endpoint, uint32_t index, const void *address, size_t length)
{
    size_t own = private_size(&endpoint->base);
    struct ofpi_peer *peer = calloc(1, sizeof(*peer) + own + length);
    char *tail = (char *)(peer + 1);

    if (!peer)
        return NULL;
    ofp_list_init(&peer->backlog);
    ofp_list_init(&peer->pendings);
    ofp_list_init(&peer->announced);
    ofp_list_init(&peer->receives);
    peer->held.expired = hold_expired;
    peer->base.endpoint = &endpoint->base;
    peer->base.index = index;
    peer->base.private = tail;
    peer->base.address = memcpy(tail + own, address, length);
    peer->base.address_length = length;
    if (endpoint->base.ops->peer_open && endpoint->base.ops->peer_open(&peer->base) != 0) {
        free(peer);
        return NULL;
    }
    return peer;
}

static void peer_free(struct ofpi_peer *peer)
{
    OFPI_CHECK(!peer || (ofp_list_empty(&peer->backlog) && ofp_list_empty(&peer->pendings)));
    if (peer && peer->base.endpoint->ops->peer_close)
        peer->base.endpoint->ops->peer_close(&peer->base);
    free(peer);
}

static int peers_grow(struct ofpi_endpoint *endpoint, uint32_t place)
{
    uint32_t capacity = endpoint->peer_capacity ? endpoint->peer_capacity : 16;
    struct ofpi_peer **peers;

    while (capacity <= place)
        capacity *= 2;
    peers = realloc(endpoint->peers, capacity * sizeof(*peers));
    if (!peers)
        return -ENOMEM;
    memset(peers + endpoint->peer_capacity, 0, (capacity - endpoint->peer_capacity) * sizeof(*peers));
    endpoint->peers = peers;
    endpoint->peer_capacity = capacity;
    return 0;
}

/* A sender that was unknown until its address entered the vector keeps its connection. */
static struct ofpi_peer *adopt_stranger(struct ofpi_endpoint *endpoint, const void *address, size_t length)
{
    uint32_t index;
    struct ofpi_peer *peer;

    if (!endpoint->stranger_addresses || ofpi_av_table_find(endpoint->stranger_addresses, address, length, &index) != 0)
        return NULL;
    peer = endpoint->strangers[ofpi_id_index(index)];
    ofpi_av_table_remove(endpoint->stranger_addresses, index);
    endpoint->strangers[ofpi_id_index(index)] = NULL;
    return peer;
}

/* Out of line, so that who finds the peer saves no registers for this. */
static __attribute__((noinline)) struct ofpi_peer *peer_make(struct ofpi_endpoint *endpoint, uint32_t index, int *error)
{
    uint32_t place = ofpi_id_index(index);
    size_t length;
    const void *address = ofpi_av_table_lookup(endpoint->av->table, index, &length);
    struct ofpi_peer *peer;

    *error = -OFP_EADDRNOTAVAIL;
    if (!address)
        return NULL;
    *error = -ENOMEM;
    if (place >= endpoint->peer_capacity && peers_grow(endpoint, place) != 0)
        return NULL;
    peer = adopt_stranger(endpoint, address, length);
    if (peer) {
        peer->base.index = index;
        peer->gone = false;
    } else {
        peer = peer_new(endpoint, index, address, length);
    }
    if (!peer)
        return NULL;
    endpoint->peers[place] = peer;
    *error = 0;
    return peer;
}

struct ofpi_peer *ofpi_peer_get(struct ofpi_endpoint *endpoint, uint32_t index, int *error)
{
    struct ofpi_peer *peer = ofpi_peer_at(endpoint, index);

    return __builtin_expect(peer != NULL, 1) ? peer : peer_make(endpoint, index, error);
}

struct ofpi_peer *ofpi_peer_only(struct ofpi_endpoint *endpoint, const void *address, size_t length)
{
    if (!endpoint->peer_capacity && peers_grow(endpoint, 0) != 0)
        return NULL;
    endpoint->peers[0] = peer_new(endpoint, OFP_PEER_UNKNOWN, address, length);
    return endpoint->peers[0];
}

int ofpi_peers_make(struct ofpi_endpoint *endpoint)
{
    uint32_t cursor = 0, index;
    int error = 0;

    while (!error && ofpi_av_table_next(endpoint->av->table, &cursor, &index) == 0)
        ofpi_peer_get(endpoint, index, &error);
    return error;
}

static struct ofpi_peer *stranger_get(struct ofpi_endpoint *endpoint, const void *address, size_t length)
{
    struct ofpi_peer **strangers;
    uint32_t index, place;

    if (!endpoint->stranger_addresses && !(endpoint->stranger_addresses = ofpi_av_table_new()))
        return NULL;
    if (ofpi_av_table_insert(endpoint->stranger_addresses, address, length, &index) != 0)
        return NULL;
    place = ofpi_id_index(index);
    if (place >= endpoint->stranger_count) {
        strangers = realloc(endpoint->strangers, (place + 1) * sizeof(*strangers));
        if (!strangers)
            return NULL;
        memset(strangers + endpoint->stranger_count, 0, (place + 1 - endpoint->stranger_count) * sizeof(*strangers));
        endpoint->strangers = strangers;
        endpoint->stranger_count = place + 1;
    }
    if (!endpoint->strangers[place])
        endpoint->strangers[place] = peer_new(endpoint, OFP_PEER_UNKNOWN, address, length);
    return endpoint->strangers[place];
}

struct ofp_peer *ofpi_peer_by_address(struct ofp_endpoint *handle, const void *address, size_t length)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_peer *peer;
    uint32_t index;
    int error = 0;

    if (ofpi_av_table_find(endpoint->av->table, address, length, &index) == 0 ||
        (endpoint->av->auto_insert && ofpi_av_table_insert(endpoint->av->table, address, length, &index) == 0))
        peer = ofpi_peer_get(endpoint, index, &error);
    else
        peer = stranger_get(endpoint, address, length);
    return peer ? &peer->base : NULL;
}

/* --------------------------------------------------------------------------------------------------- state changes */

void ofpi_peer_connecting(struct ofp_peer *base)
{
    struct ofpi_peer *peer = (struct ofpi_peer *)base;

    if (base->state == OFP_PEER_CONNECTING)
        return;
    if (base->state == OFP_PEER_LOST) {
        memset(base->private, 0, private_size(base->endpoint));
        base->incarnation = 0;
    }
    change_state(peer, OFP_PEER_CONNECTING, 0);
}

static void backlog_ready(struct ofpi_peer *peer)
{
    struct ofpi_endpoint *endpoint = endpoint_of(&peer->base);

    if (ofp_list_empty(&peer->backlog) || ofp_list_linked(&peer->node) || peer->fenced || peer->held.position)
        return;
    ofp_list_append(&endpoint->backlogged, &peer->node);
    /* Who sleeps has no deadline yet by which to try again. */
    endpoint->domain->endpoints_armed = false;
}

/* Its time has come, or it is no more: see whether the backlog may go on. */
static void hold_end(struct ofpi_peer *peer)
{
    ofpi_timers_stop(&endpoint_of(&peer->base)->domain->timers, &peer->held);
    backlog_ready(peer);
}

static void hold_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    hold_end(OFP_CONTAINER_OF(timer, struct ofpi_peer, held));
}

void ofpi_peer_up(struct ofp_peer *base)
{
    struct ofpi_peer *peer = (struct ofpi_peer *)base;

    if (!change_state(peer, OFP_PEER_UP, 0))
        return;
    peer->gone = false;
    endpoint_of(base)->statistics.peers_up++;
    if (endpoint_of(base)->connection)
        ofpi_connection_up(endpoint_of(base));
    else if (endpoint_of(base)->eq)
        ofpi_eq_peer(endpoint_of(base)->eq, base, OFP_EVENT_PEER_UP, 0, 0);
    backlog_ready(peer);
}

static void fail_list(struct ofp_list *list, int error, int provider_error)
{
    while (!ofp_list_empty(list))
        ofpi_transfer_complete(OFP_CONTAINER_OF(list->next, struct ofp_pending, node), error, provider_error);
}

static void fail_sends(struct ofp_list *list, int error, int provider_error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, list) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(node, struct ofp_pending, node);

        if (!ofpi_operation_is_receive(&pending->operation))
            ofpi_transfer_complete(pending, error, provider_error);
    }
}

/* Receives that a transport matches end only once it has let go of them. */
void ofpi_receives_take_back(struct ofpi_endpoint *endpoint, struct ofp_list *list, int error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, list) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(node, struct ofp_pending, node);

        if (endpoint->base.ops->cancel && endpoint->base.ops->cancel(&endpoint->base, pending) == 0)
            ofpi_transfer_complete(pending, error, 0);
    }
}

/* Nothing more comes from it: what waits for that ends, as far as nothing came before. */
static void end_receives(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer)
{
    ofpi_receives_take_back(endpoint, &peer->pendings, OFP_EPEERLOST);
    /* In a shared context receives are posted that name it and not through this endpoint. */
    if (endpoint->receive_context && (peer->named || endpoint->shared) && peer->base.index != OFP_PEER_UNKNOWN)
        ofpi_receive_context_end_directed(endpoint->receive_context, peer->base.index, OFP_EPEERLOST);
    peer->named = false;
}

void ofpi_peer_lost(struct ofp_peer *base, int error, bool process_gone, const char *text)
{
    struct ofpi_peer *peer = (struct ofpi_peer *)base;
    struct ofpi_endpoint *endpoint = endpoint_of(base);
    bool was_up = base->state == OFP_PEER_UP;
    int reason = error, why;

    if (base->state == OFP_PEER_LOST || !change_state(peer, OFP_PEER_LOST, error))
        return;
    /* The endpoint may be its own peer: what it closes itself is cancelled, not lost. */
    if (endpoint->closing || ofpi_connection_ends_here(endpoint)) {
        error = ECANCELED;
        process_gone = false;
    }
    /* What is cancelled ends here, and needs no reason. */
    why = text && error != ECANCELED ? ofpi_reason_keep(text) : 0;
    if (was_up)
        endpoint->statistics.peers_up--;
    endpoint->statistics.peers_lost++;
    if (endpoint->connection) {
        ofpi_connection_lost(endpoint, was_up, error, reason, text);
    } else {
        /* What is cancelled ends here, not there. */
        if (endpoint->eq && error != ECANCELED)
            ofpi_eq_peer(endpoint->eq, base, OFP_EVENT_PEER_LOST, error, why);
        ofpi_log(was_up ? OFP_LOG_INFO : OFP_LOG_WARNING, base->endpoint->info->provider,
                 "endpoint %u lost peer %u: %s", base->endpoint->id, base->index, text ? text : ofp_strerror(error));
    }
    base->endpoint->ops->peer_down(base);
    if (ofp_list_linked(&peer->node))
        ofp_list_remove(&peer->node);
    peer->fenced = false;
    ofpi_timers_stop(&endpoint->domain->timers, &peer->held);
    fail_sends(&peer->pendings, error, why);
    fail_list(&peer->backlog, error, why);
    if (endpoint->receive_context)
        ofpi_receive_context_peer_lost(endpoint->receive_context, peer, error);
    /* Gone before, and not found again: what was posted while we looked has nothing to wait for either. */
    peer->gone = process_gone || (peer->gone && error != ECANCELED);
    if (peer->gone)
        end_receives(endpoint, peer);
    if (endpoint->connection)
        ofpi_connection_end_receives(endpoint);
}

/* ------------------------------------------------------------------------------------------------------- operations */

static void connect_peer(struct ofpi_peer *peer)
{
    char text[OFP_TEXT_MAX] = "";
    int result;

    ofpi_peer_connecting(&peer->base);
    result = peer->base.endpoint->ops->connect(&peer->base, text, sizeof(text));
    if (result && peer->base.state == OFP_PEER_CONNECTING)
        ofpi_peer_lost(&peer->base, -result, false, text[0] ? text : NULL);
}

/* Whether the core holds this operation until what was posted before it has finished (fi_msg(3), FI_FENCE). */
static bool is_behind_fence(const struct ofpi_peer *peer, const struct ofp_operation *op)
{
    return op->flags & OFP_FENCE && peer->sending && peer->base.endpoint->info->emulated_caps & OFP_CAP_FENCE;
}

static const struct ofp_pending *head_of_backlog(const struct ofpi_peer *peer)
{
    return OFP_CONTAINER_OF(peer->backlog.next, const struct ofp_pending, node);
}

void ofpi_peer_look_at_fence(struct ofpi_peer *peer)
{
    if (!ofp_list_empty(&peer->backlog) && is_behind_fence(peer, &head_of_backlog(peer)->operation))
        return;
    peer->fenced = false;
    backlog_ready(peer);
}

/* A hook holds the head back for some time. */
static bool hold_back(struct ofpi_peer *peer, struct ofp_operation *op)
{
    uint64_t not_before = ofpi_hooked_not_before(op);

    if (ofpi_now() >= not_before) {
        op->flags &= ~OFPI_DELAYED;
        return false;
    }
    peer->held.deadline = not_before;
    /* Without memory for the timer it stays in the list, and is looked at again and again. */
    if (ofpi_timer_start(endpoint_of(&peer->base)->domain, &peer->held) == 0)
        ofp_list_remove(&peer->node);
    return true;
}

/* Post the head of a backlog. False: the transport is full, or the head waits at a fence or for its time; the rest stays. */
static bool flush_one(struct ofpi_peer *peer)
{
    struct ofpi_endpoint *endpoint = endpoint_of(&peer->base);
    struct ofp_pending *head = OFP_CONTAINER_OF(peer->backlog.next, struct ofp_pending, node);
    int result;

    OFPI_CHECK(peer->base.state == OFP_PEER_UP && !ofp_list_empty(&peer->backlog) && ofp_list_linked(&peer->node));
    if (__builtin_expect(head->operation.flags & OFP_FENCE, 0) && is_behind_fence(peer, &head->operation)) {
        /* Nothing is to be tried until one of the operations before it ends. */
        peer->fenced = true;
        ofp_list_remove(&peer->node);
        return false;
    }
    if (__builtin_expect(head->operation.flags & OFPI_DELAYED, 0) && hold_back(peer, &head->operation))
        return false;
    result = endpoint->base.ops->post(&endpoint->base, &peer->base, &head->transfer);
    if (result == -EAGAIN)
        return false;
    if (result != OFP_POST_PENDING)
        ofpi_transfer_complete(head, result == OFP_POST_DONE ? 0 : -result, 0);
    return true;
}

static __attribute__((noinline)) int keep_for_later(struct ofpi_peer *peer, const struct ofp_transfer *transfer)
{
    int result = ofpi_backlog_append(peer, transfer);

    if (result)
        return result;
    if (peer->base.state == OFP_PEER_UP)
        backlog_ready(peer);
    else if (peer->base.state != OFP_PEER_UP && peer->base.state != OFP_PEER_CONNECTING)
        connect_peer(peer);
    /* A peer that needed no round trip takes it at once. */
    if (peer->base.state == OFP_PEER_UP && ofp_list_linked(&peer->node) && peer->backlog.next == peer->backlog.previous)
        flush_one(peer);
    return 0;
}

/* What goes through the backlog even when the transport has room: it waits there, or gets its copy there. */
static bool goes_through_backlog(const struct ofpi_peer *peer, const struct ofp_transfer *transfer)
{
    if (transfer->op->flags & OFP_INJECT && transfer->length > peer->base.endpoint->info->inject_size)
        return true;
    return transfer->op->flags & OFPI_DELAYED || is_behind_fence(peer, transfer->op);
}

int ofpi_peer_post(struct ofpi_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofpi_endpoint *endpoint = endpoint_of(&peer->base);
    int result;

    OFPI_CHECK(ofpi_domain_is_held(endpoint->domain) && !ofpi_operation_is_receive(transfer->op));
    if (ofpi_endpoint_is_full(endpoint))
        return -EAGAIN;
    if (__builtin_expect(peer->base.state != OFP_PEER_UP || !ofp_list_empty(&peer->backlog), 0))
        return keep_for_later(peer, transfer);
    if (__builtin_expect(transfer->op->flags & (OFP_INJECT | OFP_FENCE | OFPI_DELAYED), 0) &&
        goes_through_backlog(peer, transfer))
        return keep_for_later(peer, transfer);
    result = endpoint->base.ops->post(&endpoint->base, &peer->base, transfer);
    if (result == OFP_POST_DONE) {
        ofpi_transfer_report(endpoint, transfer, 0, 0);
        return 0;
    }
    return result == -EAGAIN ? keep_for_later(peer, transfer) : result;
}

int ofpi_peers_flush(struct ofpi_endpoint *endpoint)
{
    struct ofp_list *node, *following;
    int moved = 0;

    OFP_LIST_EACH(node, following, &endpoint->backlogged) {
        struct ofpi_peer *peer = OFP_CONTAINER_OF(node, struct ofpi_peer, node);

        while (!ofp_list_empty(&peer->backlog) && flush_one(peer))
            moved++;
        if (ofp_list_empty(&peer->backlog) && ofp_list_linked(&peer->node))
            ofp_list_remove(&peer->node);
    }
    if (moved && endpoint->base.ops->flush)
        endpoint->base.ops->flush(&endpoint->base);
    return moved;
}

static int cancel_in(struct ofp_list *list, uint64_t context, uint64_t op_flags)
{
    for (struct ofp_list *node = list->previous; node != list; node = node->previous) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(node, struct ofp_pending, node);

        if (ofpi_owner_is(pending->operation.context, pending->operation.flags, context, op_flags)) {
            ofpi_transfer_complete(pending, ECANCELED, 0);
            return 0;
        }
    }
    return -ENOENT;
}

static int cancel_offloaded(struct ofpi_endpoint *endpoint, struct ofp_list *list, uint64_t context, uint64_t op_flags)
{
    for (struct ofp_list *node = list->previous; node != list; node = node->previous) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(node, struct ofp_pending, node);

        if (ofpi_operation_is_receive(&pending->operation) &&
            ofpi_owner_is(pending->operation.context, pending->operation.flags, context, op_flags)) {
            int result;

            ((struct ofpi_pending *)pending)->recalled = false;
            result = endpoint->base.ops->cancel ? endpoint->base.ops->cancel(&endpoint->base, pending) : -ENOENT;

            if (!result)
                ofpi_transfer_complete(pending, ECANCELED, 0);
            return result;
        }
    }
    return -ENOENT;
}

int ofpi_peer_cancel(struct ofpi_endpoint *endpoint, uint64_t context, uint64_t op_flags)
{
    int result = cancel_offloaded(endpoint, &endpoint->sourceless, context, op_flags);

    for (uint32_t i = 0; i < endpoint->peer_capacity && result == -ENOENT; i++) {
        if (!endpoint->peers[i])
            continue;
        result = cancel_in(&endpoint->peers[i]->backlog, context, op_flags);
        if (!result && endpoint->peers[i]->held.position)
            hold_end(endpoint->peers[i]);
        if (result == -ENOENT)
            result = cancel_offloaded(endpoint, &endpoint->peers[i]->pendings, context, op_flags);
    }
    return result;
}

/* ------------------------------------------------------------------------------------------------------------- ends */

static void peer_finish(struct ofpi_peer *peer, int error)
{
    if (peer->base.state == OFP_PEER_UP || peer->base.state == OFP_PEER_CONNECTING)
        ofpi_peer_lost(&peer->base, error, true, "closed here");
    ofpi_receives_take_back(endpoint_of(&peer->base), &peer->pendings, error);
    fail_list(&peer->pendings, error, 0);
    fail_list(&peer->backlog, error, 0);
}

void ofpi_peer_expected(struct ofpi_endpoint *endpoint, uint32_t index)
{
    struct ofpi_peer *peer = ofpi_peer_at(endpoint, index);

    if (peer)
        peer->gone = false;
}

/* While it is connecting nobody knows. */
static bool is_gone(const struct ofpi_peer *peer) { return peer->gone && peer->base.state == OFP_PEER_LOST; }

void ofpi_peer_named(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer)
{
    peer->named = true;
    if (__builtin_expect(is_gone(peer), 0))
        end_receives(endpoint, peer);
}

void ofpi_peer_named_in_shared(struct ofpi_endpoint *context, uint32_t index)
{
    struct ofp_list *node, *following;
    bool gone = false;

    OFP_LIST_EACH(node, following, &context->domain->endpoints) {
        const struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);
        const struct ofpi_peer *peer = ofpi_peer_at(endpoint, index);

        if (endpoint->shared != context || !peer)
            continue;
        if (peer->base.state == OFP_PEER_UP)
            return;
        gone |= is_gone(peer);
    }
    if (gone)
        ofpi_receive_context_end_directed(context->receive_context, index, OFP_EPEERLOST);
}

void ofpi_peer_removed(struct ofpi_endpoint *endpoint, uint32_t index)
{
    struct ofpi_peer *peer = ofpi_peer_at(endpoint, index);

    if (!peer)
        return;
    if (endpoint->receive_context && !endpoint->shared)
        ofpi_receive_context_end_directed(endpoint->receive_context, index, ECANCELED);
    /* Before it is lost, which would end them as that. */
    ofpi_receives_take_back(endpoint, &peer->pendings, ECANCELED);
    peer_finish(peer, ECANCELED);
    end_receives(endpoint, peer);
    /* Messages that came from it may still name the object: it stays, out of the way, until the endpoint closes. */
    peer->base.index = OFP_PEER_UNKNOWN;
    endpoint->peers[ofpi_id_index(index)] = NULL;
    ofp_list_append(&endpoint->removed, &peer->node);
}

void ofpi_peers_close(struct ofpi_endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->peer_capacity; i++)
        if (endpoint->peers[i])
            peer_finish(endpoint->peers[i], ECANCELED);
    for (uint32_t i = 0; i < endpoint->stranger_count; i++)
        if (endpoint->strangers[i])
            peer_finish(endpoint->strangers[i], ECANCELED);
    fail_list(&endpoint->sourceless, ECANCELED, 0);
}

void ofpi_peers_free(struct ofpi_endpoint *endpoint)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&endpoint->removed)))
        peer_free(OFP_CONTAINER_OF(node, struct ofpi_peer, node));
    for (uint32_t i = 0; i < endpoint->peer_capacity; i++)
        peer_free(endpoint->peers[i]);
    for (uint32_t i = 0; i < endpoint->stranger_count; i++)
        peer_free(endpoint->strangers[i]);
    free(endpoint->peers);
    free(endpoint->strangers);
    if (endpoint->stranger_addresses)
        ofpi_av_table_free(endpoint->stranger_addresses);
    endpoint->peers = endpoint->strangers = NULL;
    endpoint->stranger_addresses = NULL;
    endpoint->peer_capacity = endpoint->stranger_count = 0;
}
