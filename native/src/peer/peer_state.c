/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers of an endpoint: connected by the provider, lost and connected again. */
#include "peer/peer_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/page.h"
#include "base/reason.h"
#include "base/timer.h"
#include "completion/event_queue.h"
#include "completion/request_finish.h"
#include "completion/request_slots.h"
#include "match/receive_context.h"
#include "object/domain.h"
#include "object/operation.h"
#include "object/peer.h"
#include "ofipy/ofp.h"
#include "peer/backlog.h"
#include "peer/peer_find.h"
#include "peer/departure.h"
#include "peer/peer_entry.h"
#include "peer/peer_flush.h"
#include "peer/pending.h"
#include "peer/uninserted.h"
#include "progress/progress.h"
#include "progress/wait.h"

/* Until a peer that only connects counts as gone, where the transport sets no time. */
#define ABSENCE_NS 30000000000ull

static const char *const state_names[] = {
    [OFP_PEER_UNUSED] = "unused",
    [OFP_PEER_CONNECTING] = "connecting",
    [OFP_PEER_UP] = "up",
    [OFP_PEER_LOST] = "lost",
};

/* Row: from; column: to. A change that is not here is a provider's error. */
static const bool allowed[4][4] = {
    [OFP_PEER_UNUSED] = {[OFP_PEER_CONNECTING] = true},
    [OFP_PEER_CONNECTING] = {[OFP_PEER_UP] = true, [OFP_PEER_LOST] = true, [OFP_PEER_UNUSED] = true},
    [OFP_PEER_UP] = {[OFP_PEER_LOST] = true},
    [OFP_PEER_LOST] = {[OFP_PEER_CONNECTING] = true},
};

/* `error` is the reason for state LOST. */
static bool set_peer_state(struct ofpi_peer *peer, enum ofp_peer_state state, int error)
{
    enum ofp_peer_state before = peer->base.state;

    OFPI_CHECK(ofpi_domain_is_held(ofpi_endpoint_of_peer(&peer->base)->domain));

    if (!allowed[before][state]) {
        ofpi_log_write(OFP_LOG_ERROR, peer->base.endpoint->info->provider, "peer %u: no way from %s to %s",
                       peer->base.index, state_names[before], state_names[state]);
        return false;
    }
    peer->base.state = state;
    if (peer->uninserted)
        ofpi_uninserted_update(peer);
    if (__builtin_expect(ofpi_endpoint_of_peer(&peer->base)->hooks != NULL, 0))
        ofpi_endpoint_of_peer(&peer->base)->domain->upper->hooks_peer_changed(peer, before, error);
    return true;
}

/* ------------------------------------------------------------------------------------------------ connection attempts */

void ofpi_peer_attempts_stop(struct ofpi_peer *peer)
{
    ofpi_timers_stop(&ofpi_endpoint_of_peer(&peer->base)->domain->timers, &peer->again);
    peer->asked_since = peer->ask_until = 0;
    peer->warned = peer->lengthened = false;
}

void ofpi_reach_requests_end(struct ofpi_peer *peer, int error, int provider_error)
{
    struct ofpi_domain *domain = ofpi_endpoint_of_peer(&peer->base)->domain;
    struct ofp_completion completion = {.source = OFP_PEER_UNKNOWN,
                                        .endpoint = peer->base.endpoint->id,
                                        .error = error,
                                        .provider_error = provider_error};
    struct ofp_list *node;

    if (ofp_list_empty(&peer->awaiting))
        return;
    while ((node = ofp_list_pop(&peer->awaiting))) {
        struct ofp_request *request = OFP_CONTAINER_OF(node, struct ofp_request, node);

        request->awaited = NULL;
        ofpi_request_finish(request, &completion);
    }
    if (domain->leader || domain->followers)
        ofpi_domain_wake(domain);
}

/* The peer is up, or connecting has failed for good. */
static void end_connect_attempts(struct ofpi_peer *peer, int error, int provider_error)
{
    ofpi_peer_attempts_stop(peer);
    ofpi_reach_requests_end(peer, error, provider_error);
}

/* --------------------------------------------------------------------------------------------------- state changes */

void ofpi_peer_mark_connecting(struct ofp_peer *base)
{
    struct ofpi_peer *peer = (struct ofpi_peer *)base;

    if (base->state == OFP_PEER_CONNECTING)
        return;
    /* Clear the private part: nothing of the former connection may affect the new one. */
    if (base->state == OFP_PEER_LOST) {
        ofpi_peer_clear(base);
        base->incarnation = 0;
    }
    base->proven = false;
    base->cipher = 0;
    ofpi_timers_stop(&ofpi_endpoint_of_peer(base)->domain->timers, &peer->again);
    set_peer_state(peer, OFP_PEER_CONNECTING, 0);
}

void ofpi_peer_called(struct ofp_peer *base)
{
    ((struct ofpi_peer *)base)->expected = false;
    ofpi_peer_mark_connecting(base);
}

void ofpi_peer_mark_unused(struct ofp_peer *base)
{
    if (!set_peer_state((struct ofpi_peer *)base, OFP_PEER_UNUSED, 0))
        return;
    base->endpoint->ops->peer_down(base);
    ofpi_peer_clear(base);
    base->incarnation = 0;
}

/* Numbers are the endpoint's, not the peer's: a number that a program has stored never fits another peer. */
static uint32_t count_incarnation(struct ofpi_endpoint *endpoint)
{
    if (++endpoint->last_incarnation == 0)
        endpoint->last_incarnation = 1;
    return endpoint->last_incarnation;
}

void ofpi_peer_established(struct ofp_peer *base)
{
    struct ofpi_peer *peer = (struct ofpi_peer *)base;

    if (!set_peer_state(peer, OFP_PEER_UP, 0))
        return;
    /* The peer is a new incarnation, whichever side connected. */
    peer->number = count_incarnation(ofpi_endpoint_of_peer(base));
    peer->gone = peer->expected = false;
    peer->incompatible = 0;
    end_connect_attempts(peer, 0, 0);
    ofpi_endpoint_of_peer(base)->counts->peers_up++;
    ofpi_peer_entry_open(peer);
    if (ofpi_endpoint_of_peer(base)->connection)
        ofpi_endpoint_of_peer(base)->domain->upper->connection_up(ofpi_endpoint_of_peer(base));
    else if (ofpi_endpoint_of_peer(base)->eq)
        ofpi_eq_report_peer(ofpi_endpoint_of_peer(base)->eq, base, OFP_EVENT_PEER_UP, peer->number, 0, 0);
    /* The next round of progress posts the backlog: a provider's callback must not. */
    ofpi_backlog_schedule(peer);
}

static void fail_operations(struct ofp_list *list, int error, int provider_error)
{
    while (!ofp_list_empty(list)) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(list->next, struct ofp_pending, node);

        ofpi_transfer_complete(pending, ofpi_loss_error_choose(pending->operation.flags, error), provider_error);
    }
}

/* Receives stay posted: the loss of a connection does not mean that the peer's process has ended. */
static void fail_sends(struct ofp_list *list, int error, int provider_error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, list) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(node, struct ofp_pending, node);

        if (!ofpi_operation_is_receive(&pending->operation))
            ofpi_transfer_complete(pending, ofpi_loss_error_choose(pending->operation.flags, error), provider_error);
    }
}

/* Receives that the transport matches end only when the transport has cancelled them. */
void ofpi_receives_end(struct ofpi_endpoint *endpoint, struct ofp_list *list, int error, int provider_error)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, list) {
        struct ofp_pending *pending = OFP_CONTAINER_OF(node, struct ofp_pending, node);

        if (endpoint->base.ops->cancel && endpoint->base.ops->cancel(&endpoint->base, pending) == 0)
            ofpi_transfer_complete(pending, error, provider_error);
    }
}

static void stop_ending_timer(struct ofpi_peer *peer)
{
    if (peer->member)
        ofpi_timers_stop(&ofpi_endpoint_of_peer(&peer->base)->domain->timers, &peer->member->ending);
}

/* End the receives that name this peer, except those that match a message which arrived before. */
static void end_directed_receives(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer)
{
    struct ofpi_end end = ofpi_departure_end_build(peer);

    stop_ending_timer(peer);
    ofpi_receives_end(endpoint, &peer->pendings, end.error, end.reason);
    /* Receives in a shared context may name the peer although they were not posted through this endpoint. */
    if (endpoint->receive_context && (peer->named || endpoint->shared) && peer->base.index != OFP_PEER_UNKNOWN)
        ofpi_receive_context_end_directed(endpoint->receive_context, peer->base.index, end.error, end.reason);
    peer->named = false;
}

/* Receives that are bound to the incarnation which ends, while others that name the peer may stay. */
static void end_bound_receives(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer, int error, int reason)
{
    if (peer->bound)
        ofpi_receive_context_end_bound(endpoint->receive_context, peer->base.index,
                                       ofpi_loss_error_choose(OFP_BOUND, error), reason);
    peer->bound = false;
}

/* While the peer is CONNECTING this is unknown. */
static bool has_process_ended(const struct ofpi_peer *peer) { return peer->gone && peer->base.state == OFP_PEER_LOST; }

static void ending_expired(struct ofp_timer *timer, uint64_t now)
{
    struct ofpi_peer *peer = OFP_CONTAINER_OF(timer, struct ofpi_member, ending)->peer;

    (void)now;
    if (ofpi_departure_of_peer(peer) && peer->base.state != OFP_PEER_LOST)
        ofpi_peer_lost(&peer->base, OFP_EPEERLOST, true, NULL);
    if (has_process_ended(peer))
        end_directed_receives(ofpi_endpoint_of_peer(&peer->base), peer);
}

/*
 * End directed receives after a pause: the roster may report how the peer ended, and a transport that matches needs
 * time to match messages that arrived before.
 */
static void schedule_end_of_receives(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer)
{
    uint64_t pause = ofpi_departure_pause_compute(peer);
    struct ofp_timer *ending;

    if (!pause) {
        end_directed_receives(endpoint, peer);
        return;
    }
    ending = &peer->member->ending;
    if (ending->position)
        return;
    ending->expired = ending_expired;
    ending->deadline = ofpi_clock_read() + pause;
    ofpi_timer_start(endpoint->domain, ending);
}

static void absence_expired(struct ofp_timer *timer, uint64_t now)
{
    struct ofpi_peer *peer = OFP_CONTAINER_OF(timer, struct ofpi_peer, again);
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);

    (void)now;
    OFPI_CHECK(peer->base.state == OFP_PEER_LOST);
    ofpi_log_write(OFP_LOG_INFO, peer->base.endpoint->info->provider,
                   "endpoint %u: peer %u only connects, and has not come back: it counts as ended",
                   peer->base.endpoint->id, peer->base.index);
    peer->gone = true;
    schedule_end_of_receives(endpoint, peer);
}

/*
 * Nobody can ask a peer that only connects whether its process lives. It has a time to come back, which begins with the
 * loss: an attempt to connect in vain does not begin it again.
 */
static void start_absence_timer(struct ofpi_peer *peer, bool was_up)
{
    struct ofpi_domain *domain = ofpi_endpoint_of_peer(&peer->base)->domain;

    if (!peer->base.connects_only || peer->gone)
        return;
    if (was_up) {
        peer->again.expired = absence_expired;
        peer->again.deadline =
            ofpi_clock_read() + (domain->base.absence_limit ? domain->base.absence_limit : ABSENCE_NS);
    }
    if (peer->again.expired == absence_expired)
        ofpi_timer_start(domain, &peer->again);
}

void ofpi_peer_lost(struct ofp_peer *base, int error, bool process_gone, const char *text)
{
    struct ofpi_peer *peer = (struct ofpi_peer *)base;
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(base);
    struct ofpi_end end = ofpi_departure_end_build(peer);
    bool was_up = base->state == OFP_PEER_UP;
    int reason = error, why;

    /* A loss is reported once. */
    if (base->state == OFP_PEER_LOST || !set_peer_state(peer, OFP_PEER_LOST, error))
        return;
    /* The endpoint may be its own peer. Operations that end because this side closes are cancelled, not lost. */
    if (endpoint->closing || (endpoint->connection && endpoint->domain->upper->connection_ends_here(endpoint))) {
        error = ECANCELED;
        process_gone = false;
    }
    if (ofpi_departure_of_peer(peer) && error != ECANCELED) {
        error = end.error;
        process_gone = true;
        text = NULL;
    }
    /* A cancelled operation was ended by this side and needs no reason. */
    why = error == ECANCELED ? 0 : text ? ofpi_reason_store(text) : end.reason;
    if (was_up)
        endpoint->counts->peers_up--;
    endpoint->counts->peers_lost++;
    if (endpoint->connection) {
        endpoint->domain->upper->connection_lost(endpoint, was_up, error, reason, text);
    } else {
        /* No event: this side ended the connection. */
        if (endpoint->eq && error != ECANCELED)
            ofpi_eq_report_peer(endpoint->eq, base, OFP_EVENT_PEER_LOST, was_up ? peer->number : 0, error, why);
        ofpi_log_write(was_up || peer->warned || ofpi_departure_of_peer(peer) ? OFP_LOG_INFO : OFP_LOG_WARNING,
                       base->endpoint->info->provider, "endpoint %u lost peer %u: %s", base->endpoint->id, base->index,
                       text ? text : ofp_strerror(error));
    }
    base->endpoint->ops->peer_down(base);
    if (ofp_list_linked(&peer->node))
        ofp_list_remove(&peer->node);
    peer->fenced = false;
    ofpi_timers_stop(&endpoint->domain->timers, &peer->delay);
    end_connect_attempts(peer, error, why);
    ofpi_peer_flushes_fail(peer, error, why);
    /* Operations of the transport were posted before those in the backlog, so they end first. */
    fail_sends(&peer->pendings, error, why);
    fail_operations(&peer->backlog, error, why);
    if (endpoint->receive_context)
        ofpi_receive_context_peer_lost(endpoint->receive_context, peer, error);
    end_bound_receives(endpoint, peer, error, why);
    if (process_gone || error == EPROTONOSUPPORT)
        peer->incompatible = process_gone ? 0 : why;
    /* A peer that was gone before, and that the new attempt did not find, is still gone. So receives posted since end. */
    peer->gone = process_gone || error == EPROTONOSUPPORT || (peer->gone && error != ECANCELED);
    if (peer->gone)
        schedule_end_of_receives(endpoint, peer);
    if (error != ECANCELED)
        start_absence_timer(peer, was_up);
    if (endpoint->connection)
        endpoint->domain->upper->connection_end_receives(endpoint);
}

/* ------------------------------------------------------------------------------------------------------- departures */

void ofpi_peer_departure_handle(struct ofpi_peer *peer, enum ofpi_departure departed)
{
    struct ofpi_endpoint *endpoint = ofpi_endpoint_of_peer(&peer->base);

    if (!peer->member || peer->member->departed || peer->removed || endpoint->closing)
        return;
    peer->member->departed = departed;
    switch (peer->base.state) {
    case OFP_PEER_UNUSED:
        /* Operations that wait for the next connection attempt end now. */
        ofpi_peer_mark_connecting(&peer->base);
        ofpi_peer_lost(&peer->base, OFP_EPEERLOST, true, NULL);
        break;
    case OFP_PEER_LOST:
        peer->gone = true;
        stop_ending_timer(peer);
        schedule_end_of_receives(endpoint, peer);
        break;
    default:
        /*
         * The transport reports the loss when it has read everything that came before. A transport that matches does
         * not report it.
         */
        if (endpoint->info.offloads_matching)
            schedule_end_of_receives(endpoint, peer);
    }
}

/* ------------------------------------------------------------------------------------------------------------- ends */

static void end_peer(struct ofpi_peer *peer, int error)
{
    ofpi_peer_flushes_fail(peer, error, 0);
    if (peer->base.state == OFP_PEER_UP || peer->base.state == OFP_PEER_CONNECTING)
        ofpi_peer_lost(&peer->base, error, true, "closed here");
    stop_ending_timer(peer);
    end_connect_attempts(peer, error, 0);
    ofpi_receives_end(ofpi_endpoint_of_peer(&peer->base), &peer->pendings, error, 0);
    fail_operations(&peer->pendings, error, 0);
    fail_operations(&peer->backlog, error, 0);
}

void ofpi_peer_mark_expected(struct ofpi_peer *peer)
{
    peer->gone = false;
    peer->incompatible = 0;
    peer->expected = peer->base.state != OFP_PEER_UP;
    if (peer->again.expired == absence_expired) {
        ofpi_timers_stop(&ofpi_endpoint_of_peer(&peer->base)->domain->timers, &peer->again);
        peer->again.expired = NULL;
    }
}

void ofpi_receives_end_if_ended(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer)
{
    if (has_process_ended(peer))
        schedule_end_of_receives(endpoint, peer);
}

void ofpi_receives_end_in_shared(struct ofpi_endpoint *context, uint32_t index)
{
    struct ofp_list *node, *following;
    const struct ofpi_peer *gone = NULL;
    struct ofpi_end end;

    OFP_LIST_EACH(node, following, &context->domain->endpoints) {
        const struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);
        const struct ofpi_peer *peer = ofpi_peer_find_at(endpoint, index);

        if (endpoint->shared != context || !peer)
            continue;
        /* The peer lives if one endpoint is connected to it, even if others have lost it. */
        if (peer->base.state == OFP_PEER_UP)
            return;
        /* The timer `ending` ends these receives as well. */
        if (has_process_ended(peer) && !(peer->member && peer->member->ending.position))
            gone = peer;
    }
    if (!gone)
        return;
    end = ofpi_departure_end_build(gone);
    ofpi_receive_context_end_directed(context->receive_context, index, end.error, end.reason);
}

void ofpi_peer_removed(struct ofpi_endpoint *endpoint, uint32_t index)
{
    struct ofpi_peer *peer = ofpi_peer_find_at(endpoint, index);

    if (!peer)
        return;
    if (endpoint->receive_context)
        ofpi_receive_context_end_directed(endpoint->receive_context, index, ECANCELED, 0);
    /* End the receives before the loss, which would end them with its own error. */
    ofpi_receives_end(endpoint, &peer->pendings, ECANCELED, 0);
    end_peer(peer, ECANCELED);
    end_directed_receives(endpoint, peer);
    ofpi_uninserted_clear(peer);
    peer->base.index = OFP_PEER_UNKNOWN;
    peer->removed = true;
    ofpi_peer_entry_close(peer);
    endpoint->peers[ofpi_index_of_id(index)] = NULL;
    ofp_list_append(&endpoint->removed, &peer->node);
}

void ofpi_peers_close(struct ofpi_endpoint *endpoint)
{
    ofpi_timers_stop(&endpoint->domain->timers, &endpoint->forgetting);
    for (uint32_t i = 0; i < endpoint->peer_capacity; i++)
        if (endpoint->peers[i])
            end_peer(endpoint->peers[i], ECANCELED);
    for (uint32_t i = 0; i < endpoint->unknown_sender_count; i++)
        if (endpoint->unknown_senders[i])
            end_peer(endpoint->unknown_senders[i], ECANCELED);
    fail_operations(&endpoint->sourceless, ECANCELED, 0);
}
