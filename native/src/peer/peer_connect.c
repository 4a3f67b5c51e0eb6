/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting to a peer, and the one loop that tries again. Programs start in any order: while nothing listens at an
 * inserted address, or a peer defers the request, the core calls the provider's `connect` again, with growing pauses. In
 * a pause the peer is in state UNUSED, so that it can connect to this side meanwhile; posted operations stay in its
 * backlog.
 */
#include "peer/peer_connect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/address_vector.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "completion/request_finish.h"
#include "completion/request_slots.h"
#include "object/domain.h"
#include "object/vector.h"
#include "ofipy/ofp.h"
#include "ofipy/request.h"
#include "peer/departure.h"
#include "peer/peer_find.h"
#include "peer/peer_state.h"
#include "progress/progress.h"

#define SECOND 1000000000ull
#define MS 1000000ull
#define PAUSE_FIRST 1 /* ms */
#define PAUSE_LONGEST 100
/* Programs that start together may wait this long for each other before a warning is logged. */
#define SILENCE SECOND

void ofpi_peer_connect(struct ofpi_peer *peer)
{
    char text[OFP_TEXT_MAX] = "";
    int result;

    if (peer->base.state == OFP_PEER_UNUSED && peer->again.position)
        return;
    ofpi_peer_mark_connecting(&peer->base);
    if (__builtin_expect(ofpi_departure_of_peer(peer) != OFPI_STAYS, 0)) {
        ofpi_peer_lost(&peer->base, OFP_EPEERLOST, true, NULL);
        return;
    }
    result = peer->base.endpoint->ops->connect(&peer->base, text, sizeof(text));
    if (!result || peer->base.state != OFP_PEER_CONNECTING)
        return;
    if (result == -ECONNREFUSED)
        ofpi_peer_absence_handle(&peer->base, text[0] ? text : NULL);
    else
        ofpi_peer_lost(&peer->base, -result, false, text[0] ? text : NULL);
}

static void pause_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    ofpi_peer_connect(OFP_CONTAINER_OF(timer, struct ofpi_peer, again));
}

static double compute_seconds(uint64_t from, uint64_t to) { return (double)(to - from) / (double)SECOND; }

/* The setting that determines how long connecting is retried, for error texts. */
static const char *get_timeout_setting(const struct ofpi_peer *peer)
{
    return peer->lengthened ? "insert(wait=)" : "OFIPY_CONNECT_TIMEOUT";
}

static void fail_departed_member(struct ofpi_peer *peer)
{
    char text[OFP_TEXT_MAX];

    snprintf(text, sizeof(text), "nobody is at the address of rank %u any more; its endpoint or its process has ended",
             peer->member->rank);
    ofpi_peer_lost(&peer->base, OFP_EPEERLOST, true, text);
}

static void fail_attempts(struct ofpi_peer *peer, uint64_t now, int error, const char *text)
{
    /* The remedy follows this separator. */
    const char *remedy = strstr(text, "; ");
    char whole[OFP_TEXT_MAX];

    if (peer->asked_since != now) {
        snprintf(whole, sizeof(whole), "%.*s, tried for %.0f s (%s)%s", (int)(remedy ? remedy - text : 400), text,
                 compute_seconds(peer->asked_since, now), get_timeout_setting(peer), remedy ? remedy : "");
        text = whole;
    }
    /* Nobody has refused: the requests that only wait for the peer have waited as long as they were told to. */
    if (error == ECONNREFUSED)
        ofpi_reach_requests_end(peer, ETIMEDOUT, 0);
    ofpi_peer_lost(&peer->base, error, false, text);
}

/* A shortage may not end by waiting for other programs, so the operator reads of it at once. */
static void warn_of_attempts(struct ofpi_peer *peer, uint64_t now, int error, const char *text)
{
    bool is_shortage = error != ECONNREFUSED && error != ETIMEDOUT;

    if (peer->warned || (!is_shortage && now - peer->asked_since < SILENCE))
        return;
    peer->warned = true;
    ofpi_log_write(OFP_LOG_WARNING, peer->base.endpoint->info->provider,
                   "endpoint %u waits for peer %u, up to %.0f s (%s): %s", peer->base.endpoint->id, peer->base.index,
                   compute_seconds(peer->asked_since, peer->ask_until), get_timeout_setting(peer), text);
}

static void schedule_next_attempt(struct ofpi_peer *peer, uint64_t now)
{
    peer->again.expired = pause_expired;
    peer->again.deadline = now + peer->pause * MS < peer->ask_until ? now + peer->pause * MS : peer->ask_until;
    peer->pause = (uint8_t)(2 * peer->pause < PAUSE_LONGEST ? 2 * peer->pause : PAUSE_LONGEST);
    ofpi_timer_start(ofpi_endpoint_of_peer(&peer->base)->domain, &peer->again);
    ofpi_peer_mark_unused(&peer->base);
}

/*
 * Whether anybody waits for the connection: an operation or a request. The program always waits for the connection of an
 * endpoint of type MSG, and a group for each attempt to connect one of its members.
 */
static bool is_awaited(const struct ofpi_peer *peer)
{
    return ((const struct ofpi_endpoint *)peer->base.endpoint)->connection || peer->member ||
           !ofp_list_empty(&peer->awaiting) || !ofp_list_empty(&peer->backlog);
}

/* Try again after a pause, or fail: with `patience` 0, or when it is over. */
static void end_attempt(struct ofpi_peer *peer, uint64_t patience, int error, const char *text, bool absent)
{
    uint64_t now = ofpi_clock_read();

    /* This attempt is the last: the requests and operations that waited for it were cancelled while it was under way. */
    if (patience && !is_awaited(peer)) {
        ofpi_peer_attempts_stop(peer);
        ofpi_peer_mark_unused(&peer->base);
        return;
    }
    if (!text)
        text = ofp_strerror(error);
    if (!peer->asked_since) {
        peer->asked_since = now;
        peer->pause = PAUSE_FIRST;
        if (peer->ask_until < now + patience)
            peer->ask_until = now + patience;
    }
    if (patience && now < peer->ask_until) {
        warn_of_attempts(peer, now, error, text);
        schedule_next_attempt(peer, now);
    } else if (absent && peer->member) {
        fail_departed_member(peer);
    } else {
        fail_attempts(peer, now, error, text);
    }
}

void ofpi_peer_absence_handle(struct ofp_peer *base, const char *text)
{
    struct ofpi_peer *peer = (struct ofpi_peer *)base;

    if (base->state == OFP_PEER_CONNECTING)
        end_attempt(peer, ofpi_departure_patience_compute(peer), ECONNREFUSED, text, true);
}

void ofpi_peer_deferral_handle(struct ofp_peer *base, int error, const char *text)
{
    struct ofpi_peer *peer = (struct ofpi_peer *)base;

    if (base->state == OFP_PEER_CONNECTING)
        end_attempt(peer, ofpi_endpoint_of_peer(base)->domain->connect_ns, error, text, false);
}

/* -------------------------------------------------------------------------------------------- requests that wait for a peer */

static ofp_request_t start_reach_request(struct ofpi_endpoint *endpoint, struct ofpi_peer *peer, uint64_t patience)
{
    struct ofp_request *request = ofpi_request_allocate(endpoint);
    ofp_request_t handle;

    if (!request)
        return -ENOMEM;
    handle = ofpi_handle_of_request(request);
    if (peer->base.state == OFP_PEER_UP) {
        ofpi_request_finish(request,
                            &(struct ofp_completion){.source = OFP_PEER_UNKNOWN, .endpoint = endpoint->base.id});
        return handle;
    }
    request->awaited = peer;
    request->patient_until = ofpi_clock_read() + patience;
    ofp_list_append(&peer->awaiting, &request->node);
    if (peer->ask_until < request->patient_until)
        peer->ask_until = request->patient_until;
    if (request->patient_until >
        (peer->asked_since ? peer->asked_since : ofpi_clock_read()) + endpoint->domain->connect_ns)
        peer->lengthened = true;
    if (peer->base.state != OFP_PEER_CONNECTING)
        ofpi_peer_connect(peer);
    return handle;
}

/* Compute the peer's deadline again from the requests that remain. */
static void update_connect_deadline(struct ofpi_peer *peer)
{
    const struct ofp_list *node;

    peer->ask_until =
        peer->asked_since ? peer->asked_since + ofpi_endpoint_of_peer(&peer->base)->domain->connect_ns : 0;
    for (node = peer->awaiting.next; node != &peer->awaiting; node = node->next) {
        const struct ofp_request *other = OFP_CONTAINER_OF(node, const struct ofp_request, node);

        if (peer->ask_until < other->patient_until)
            peer->ask_until = other->patient_until;
    }
}

void ofpi_reach_cancel(struct ofp_request *request)
{
    struct ofpi_peer *peer = request->awaited;

    OFPI_CHECK(ofp_list_linked(&request->node) && peer->base.state != OFP_PEER_UP);
    ofp_list_remove(&request->node);
    request->awaited = NULL;
    update_connect_deadline(peer);
    /* In a pause, end the attempts at once. An attempt in flight continues and is the last. */
    if (peer->again.position && ofp_list_empty(&peer->awaiting) && ofp_list_empty(&peer->backlog))
        ofpi_peer_attempts_stop(peer);
    ofpi_request_finish(request, &(struct ofp_completion){.source = OFP_PEER_UNKNOWN,
                                                          .endpoint = request->endpoint->base.id,
                                                          .error = ECANCELED});
}

ofp_request_t ofp_reach_request(struct ofp_endpoint *handle, uint32_t index, uint64_t patience)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofpi_peer *peer;
    ofp_request_t result;
    int error = ofpi_endpoint_enter(endpoint);

    if (error)
        return error;
    endpoint = endpoint->behind;
    error = -EOPNOTSUPP;
    peer = endpoint->av ? ofpi_peer_get(endpoint, index, &error) : NULL;
    result = peer ? start_reach_request(endpoint, peer, patience) : error;
    ofpi_domain_leave(endpoint->domain);
    return result;
}

int ofp_peer_is_up(struct ofp_endpoint *handle, uint32_t index)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    const struct ofpi_peer *peer;
    int result = ofpi_endpoint_enter(endpoint);

    if (result)
        return result;
    endpoint = endpoint->behind;
    result = -EOPNOTSUPP;
    if (endpoint->av) {
        peer = ofpi_peer_find_at(endpoint, index);
        result = peer && peer->base.state == OFP_PEER_UP;
    }
    ofpi_domain_leave(endpoint->domain);
    return result;
}

int64_t ofp_peer_incarnation(struct ofp_endpoint *handle, uint32_t index)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    const struct ofpi_peer *peer;
    int64_t result = ofpi_endpoint_enter(endpoint);
    size_t length;

    if (result)
        return result;
    endpoint = endpoint->behind;
    result = -EOPNOTSUPP;
    if (ofpi_endpoint_has_incarnations(endpoint)) {
        peer = ofpi_peer_find_at(endpoint, index);
        result = peer && peer->base.state == OFP_PEER_UP ? peer->number : 0;
        if (!peer && !ofpi_av_table_find_address(endpoint->av->table, index, &length))
            result = -OFP_EADDRNOTAVAIL;
    }
    ofpi_domain_leave(endpoint->domain);
    return result;
}
