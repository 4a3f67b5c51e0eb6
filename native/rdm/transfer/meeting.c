/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/meeting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "meet/versions.h"
#include "rdm/transfer/hello.h"
#include "rdm/transfer/path.h"
#include "ofipy/check.h"

#define MILLISECOND 1000000ull
#define PAUSE_FIRST (10 * MILLISECOND)
#define PAUSE_LONGEST (500 * MILLISECOND)
/* Time for which packets of a lost peer wait for space. */
#define PATIENCE (1000 * MILLISECOND)

/* A meeting event and everything that is known with it. */
struct meeting_event {
    enum ofpi_meet_event event;
    unsigned facts;
    const struct ofpi_path_request *request; /* REQUEST */
    const struct ofpi_rdm_hello *hello;      /* the hello of the request */
    struct ofpi_path_end end;                /* the reason, if the act is to report the loss */
};

static void handle_meeting_event(struct ofp_peer *peer, const struct meeting_event *what);

static uint64_t read_peer_clock(const struct ofp_peer *peer)
{
    return ofpi_rdm_endpoint_of(peer->endpoint)->core->now();
}

static unsigned compute_lateness(const struct ofp_peer *peer)
{
    return ofpi_backoff_check_deadline(&ofpi_rdm_peer_of(peer)->backoff, read_peer_clock(peer));
}

static void handle_simple_event(struct ofp_peer *peer, enum ofpi_meet_event event, unsigned facts, int error)
{
    handle_meeting_event(peer, &(struct meeting_event){.event = event, .facts = facts, .end = {.error = error}});
}

/* ----------------------------------------------------------------------------------------------------------- timers */

static void meeting_timer_expired(struct ofp_timer *timer, uint64_t now)
{
    struct ofp_peer *peer = OFP_CONTAINER_OF(timer, struct ofpi_rdm_peer, timer)->base;

    (void)now;
    /* The time for draining is over, even if packets are left. */
    if (ofpi_rdm_peer_of(peer)->meet == OFPI_MEET_DRAINING)
        handle_meeting_event(
            peer, &(struct meeting_event){.event = OFPI_MEET_DRAINED, .end = ofpi_rdm_peer_of(peer)->path->end});
    else
        handle_simple_event(peer, OFPI_MEET_TIMER, compute_lateness(peer), ETIMEDOUT);
}

static void start_meeting_timer(struct ofp_peer *peer, uint64_t deadline)
{
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);

    self->timer.deadline = deadline;
    self->timer.expired = meeting_timer_expired;
    ofpi_rdm_endpoint_of(peer->endpoint)->core->timer_start(peer->endpoint->domain, &self->timer);
}

static void stop_meeting_timer(struct ofp_peer *peer)
{
    ofpi_rdm_endpoint_of(peer->endpoint)->core->timer_stop(peer->endpoint->domain, &ofpi_rdm_peer_of(peer)->timer);
}

/* ------------------------------------------------------------------------------------------------------------- acts */

static void abandon_path(struct ofpi_rdm_path **place)
{
    struct ofpi_rdm_path *path = *place;

    *place = NULL;
    if (path)
        ofpi_rdm_path_abandon(path);
}

static void abandon_both_paths(struct ofpi_rdm_peer *self)
{
    abandon_path(&self->path);
    abandon_path(&self->other);
}

void ofpi_rdm_peer_disconnect(struct ofp_peer *peer)
{
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);

    stop_meeting_timer(peer);
    abandon_both_paths(self);
    self->meet = OFPI_MEET_IDLE;
}

/* Request a path. 0 or a negative errno. */
static int request_path(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(peer->endpoint);
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);
    struct ofpi_rdm_path *path = ofpi_rdm_path_create(endpoint, peer);
    uint8_t hello[OFPI_RDM_HELLO_SIZE];
    int result;

    if (!path)
        return -ENOBUFS;
    OFP_CHECK(self->meet == OFPI_MEET_CONNECTING && !self->path);
    path->opened = true;
    ofpi_rdm_hello_write(path, hello);
    result = endpoint->channel.ops->connect(&path->base, hello, sizeof(hello), text, text_size);
    if (result) {
        ofpi_rdm_path_free(path);
        return result;
    }
    self->path = path;
    start_meeting_timer(peer, self->backoff.deadline);
    return 0;
}

static void retry_request(struct ofp_peer *peer)
{
    char text[OFP_TEXT_MAX] = "";
    int result = request_path(peer, text, sizeof(text));

    if (result)
        handle_meeting_event(
            peer, &(struct meeting_event){
                      .event = ofpi_meet_is_shortage(-result) ? OFPI_MEET_SHORTAGE : OFPI_MEET_REJECT,
                      .facts = compute_lateness(peer),
                      .end = {.error = -result, .absent = result == -ECONNREFUSED, .text = text[0] ? text : NULL}});
}

/* NULL: there is no memory or buffer for a path. The request was answered or is invalid. */
static struct ofpi_rdm_path *accept_path(struct ofp_peer *peer, const struct meeting_event *what)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(peer->endpoint);
    struct ofpi_rdm_path *path = ofpi_rdm_path_create(endpoint, peer);
    uint8_t hello[OFPI_RDM_HELLO_SIZE];

    if (!path) {
        endpoint->channel.ops->refuse(&endpoint->channel, what->request->id, OFPI_REFUSE_LATER);
        return NULL;
    }
    ofpi_rdm_hello_store(path, what->hello);
    ofpi_rdm_hello_write(path, hello);
    if (endpoint->channel.ops->accept(&path->base, what->request->id, hello, sizeof(hello)) == 0)
        return path;
    ofpi_rdm_path_free(path);
    return NULL;
}

static void init_meeting(struct ofp_peer *peer)
{
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(peer->endpoint);

    self->base = peer;
    self->backoff = ofpi_backoff_start(read_peer_clock(peer) + endpoint->connect_timeout, PAUSE_FIRST, PAUSE_LONGEST);
}

static void accept_path_request(struct ofp_peer *peer, const struct meeting_event *what)
{
    struct ofpi_rdm_path *path = accept_path(peer, what);
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);

    OFP_CHECK(self->meet == OFPI_MEET_ACCEPTED && !self->path);
    if (!path) {
        /* Operations may wait for our own request, which the peer's request replaced. */
        handle_simple_event(peer, OFPI_MEET_SHORTAGE, peer->state == OFP_PEER_CONNECTING ? OFPI_MEET_WANTED : 0,
                            ENOBUFS);
        return;
    }
    /* The timer is that of our own request, which was replaced or put off. */
    stop_meeting_timer(peer);
    if (peer->state != OFP_PEER_CONNECTING) {
        ofp_peer_connecting(peer);
        init_meeting(peer);
    }
    self->meet = OFPI_MEET_ACCEPTED;
    self->path = path;
}

static void report_peer_up(struct ofp_peer *peer)
{
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);

    OFP_CHECK(self->meet == OFPI_MEET_UP && self->path->base.peer == peer && self->path->state != OFPI_RDM_DROPPED);
    stop_meeting_timer(peer);
    self->path->state = OFPI_RDM_UP;
    peer->incarnation = self->path->incarnation;
    peer->proven = self->path->base.proven;
    ofp_peer_up(peer);
    /* The other end of this path is ours too: it can send now, and its requests have waited. */
    if (self->other) {
        self->other->state = OFPI_RDM_UP;
        ofpi_rdm_path_schedule_now(self->other);
    }
}

static void drain_path(struct ofp_peer *peer, const struct ofpi_path_end *end)
{
    struct ofpi_rdm_path *path = ofpi_rdm_peer_of(peer)->path;

    OFP_CHECK(ofpi_rdm_peer_of(peer)->meet == OFPI_MEET_DRAINING && path->base.peer == peer);
    path->state = OFPI_RDM_OVER;
    path->end = *end;
    /* The text belongs to the caller and is not valid later. */
    path->end.text = NULL;
    start_meeting_timer(peer, read_peer_clock(peer) + PATIENCE);
    ofpi_rdm_path_schedule_now(path);
}

static void probe_peer(struct ofp_peer *peer, const struct ofpi_path_end *end)
{
    struct ofpi_rdm_path *path = ofpi_rdm_peer_of(peer)->path;

    path->state = OFPI_RDM_OVER;
    /* A peer that only connects has no listener that could answer. */
    if (path->base.channel->ops->probe && !peer->connects_only)
        path->base.channel->ops->probe(&path->base);
    else
        handle_meeting_event(peer, &(struct meeting_event){.event = OFPI_MEET_CLOSED, .end = *end});
}

static void reject_request(struct ofp_peer *peer, const struct ofpi_path_request *asked)
{
    struct ofpi_channel *channel = &ofpi_rdm_endpoint_of(peer->endpoint)->channel;

    channel->ops->refuse(channel, asked->id, OFPI_REFUSE_LATER);
}

/* The core calls peer_down for a lost peer, which sets the state to IDLE: restore the decided one. */
static void report_peer_lost(struct ofp_peer *peer, const struct ofpi_path_end *end)
{
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);
    uint8_t next = self->meet;

    if (end->absent)
        ofp_peer_absent(peer, end->text);
    else
        ofp_peer_lost(peer, end->error, end->process_gone, end->text);
    self->meet = next;
}

/*
 * Decide on an event, then execute the acts in the order of enum ofpi_meet_act. An act may cause a further event, so
 * the state is set before the acts.
 */
static void handle_meeting_event(struct ofp_peer *peer, const struct meeting_event *what)
{
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);
    unsigned acts = ofpi_meet_state_advance(&self->meet, what->event, what->facts);

    if (acts & OFPI_MEET_DO_LOSE)
        report_peer_lost(peer, &what->end);
    else if (acts & OFPI_MEET_DO_CLOSE)
        abandon_both_paths(self);
    if (acts & OFPI_MEET_DO_DRAIN)
        drain_path(peer, &what->end);
    if (acts & OFPI_MEET_DO_PROBE)
        probe_peer(peer, &what->end);
    if (acts & OFPI_MEET_DO_PUT_OFF)
        reject_request(peer, what->request);
    if (acts & OFPI_MEET_DO_ACCEPT)
        accept_path_request(peer, what);
    if (acts & OFPI_MEET_DO_CONNECT)
        retry_request(peer);
    if (acts & OFPI_MEET_DO_WAIT)
        start_meeting_timer(peer, ofpi_backoff_advance(&self->backoff, read_peer_clock(peer)));
    if (acts & OFPI_MEET_DO_USE)
        report_peer_up(peer);
}

/* --------------------------------------------------------------------------------------------- requests of the core */

int ofpi_rdm_peer_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);
    int result;

    if (peer->connects_only) {
        snprintf(text, text_size,
                 "nobody can connect to it: it connects to others, and is answered on that connection, "
                 "which there is none of now");
        return -EHOSTUNREACH;
    }
    init_meeting(peer);
    ofpi_meet_state_advance(&self->meet, OFPI_MEET_CONNECT, 0);
    result = request_path(peer, text, text_size);
    if (!result || !ofpi_meet_is_shortage(-result))
        return result;
    handle_simple_event(peer, OFPI_MEET_SHORTAGE, compute_lateness(peer), -result);
    return 0;
}

/* -------------------------------------------------------------------------------------------- events of the channel */

/* The endpoint is its own peer: what it sends by one path arrives by the other. */
static void accept_own_request(struct ofp_peer *peer, const struct meeting_event *what)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(peer->endpoint);
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);

    if (self->meet == OFPI_MEET_CONNECTING && !self->other)
        self->other = accept_path(peer, what);
    else
        endpoint->channel.ops->refuse(&endpoint->channel, what->request->id, OFPI_REFUSE);
}

static unsigned compute_request_facts(const struct ofp_peer *peer, const struct ofpi_path_request *asked,
                                      const struct ofpi_rdm_hello *hello)
{
    const struct ofpi_rdm_path *path = ofpi_rdm_peer_of(peer)->path;
    int order = ofpi_rdm_compare_to_own(ofpi_rdm_endpoint_of(peer->endpoint), asked->address, asked->address_length);
    unsigned facts = ofpi_meet_winner_compute(OFPI_MEET_LARGER_WINS, order);

    if (!path || path->incarnation != hello->incarnation)
        facts |= OFPI_MEET_RENEWED;
    if (path && path->opened)
        facts |= OFPI_MEET_OPENED;
    if (path && !ofp_list_empty(&path->waiting))
        facts |= OFPI_MEET_UNREAD;
    return facts;
}

/* The hello of a request is invalid, or of a version that this side does not speak: `error` is a negative errno. */
static void refuse_hello(struct ofpi_rdm_endpoint *endpoint, const struct ofpi_path_request *asked, int error,
                         const char *text)
{
    struct ofpi_channel *channel = &endpoint->channel;
    bool incompatible = error == -EPROTONOSUPPORT;

    endpoint->core->log(OFP_LOG_WARNING, endpoint->provider, "endpoint %u: a connection is refused: %s",
                        endpoint->base->id, text);
    channel->ops->refuse(channel, asked->id, incompatible ? OFPI_REFUSE_INCOMPATIBLE : OFPI_REFUSE);
    if (incompatible)
        ofpi_versions_fail_caller(ofp_peer_by_address(endpoint->base, asked->address, asked->address_length), text);
}

void ofpi_rdm_requested(struct ofpi_channel *channel, const struct ofpi_path_request *asked)
{
    struct ofpi_rdm_endpoint *endpoint = (struct ofpi_rdm_endpoint *)channel;
    char text[OFP_TEXT_MAX] = "";
    struct ofpi_rdm_hello hello;
    struct meeting_event what = {.event = OFPI_MEET_REQUEST, .request = asked, .hello = &hello};
    struct ofp_peer *peer;
    int error;

    if (!endpoint->open) {
        channel->ops->refuse(channel, asked->id, OFPI_REFUSE);
        return;
    }
    error = ofpi_rdm_request_read(endpoint, asked, &hello, text, sizeof(text));
    if (error) {
        refuse_hello(endpoint, asked, error, text);
        return;
    }
    peer = ofp_peer_by_identity(endpoint->base, hello.identity, hello.connects_only, asked->address,
                                asked->address_length);
    if (!peer) {
        channel->ops->refuse(channel, asked->id, OFPI_REFUSE_LATER);
        return;
    }
    if (ofpi_rdm_request_is_own(endpoint, &hello)) {
        accept_own_request(peer, &what);
        return;
    }
    what.facts = compute_request_facts(peer, asked, &hello);
    if (what.facts & OFPI_MEET_RENEWED)
        what.end = (struct ofpi_path_end){
            .error = OFP_EPEERLOST, .process_gone = true, .text = "another endpoint has taken the peer's address"};
    else
        what.end = (struct ofpi_path_end){.error = ECONNRESET, .text = "the peer opened a new connection"};
    handle_meeting_event(peer, &what);
}

/* The peer whose current path this is; NULL if there is none. */
static struct ofp_peer *find_met_peer(const struct ofpi_rdm_path *path)
{
    struct ofp_peer *peer = path->base.peer;

    return peer && ofpi_rdm_peer_of(peer)->path == path ? peer : NULL;
}

void ofpi_rdm_accepted(struct ofpi_path *base, const uint8_t *bytes, size_t length)
{
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);
    struct ofp_peer *peer = find_met_peer(path);
    char text[OFP_TEXT_MAX] = "";
    struct ofpi_rdm_hello hello;
    int error;

    if (!peer)
        return;
    error = ofpi_rdm_answer_read(peer, bytes, length, &hello, text, sizeof(text));
    if (!error) {
        ofpi_rdm_hello_store(path, &hello);
        handle_simple_event(peer, OFPI_MEET_ACCEPT, 0, 0);
        return;
    }
    handle_meeting_event(peer,
                         &(struct meeting_event){.event = OFPI_MEET_REJECT, .end = {.error = -error, .text = text}});
}

void ofpi_rdm_refused(struct ofpi_path *base, bool later, const struct ofpi_path_end *end)
{
    struct ofp_peer *peer = find_met_peer(ofpi_rdm_path_of(base));

    if (peer)
        handle_meeting_event(peer, &(struct meeting_event){.event = later ? OFPI_MEET_LATER : OFPI_MEET_REJECT,
                                                           .facts = compute_lateness(peer),
                                                           .end = *end});
}

void ofpi_rdm_confirmed(struct ofpi_path *base)
{
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);
    struct ofp_peer *peer = find_met_peer(path);

    /* A packet may have confirmed the path already. A path that we requested is accepted, not confirmed. */
    if (peer && !path->opened && path->state == OFPI_RDM_BEGUN)
        handle_simple_event(peer, OFPI_MEET_CONFIRM, 0, 0);
}

void ofpi_rdm_broken(struct ofpi_path *base, const struct ofpi_path_end *end)
{
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);
    struct ofp_peer *peer = base->peer;
    struct meeting_event what = {.event = end->unsure ? OFPI_MEET_BROKEN : OFPI_MEET_CLOSED, .end = *end};

    if (!peer)
        return;
    if (path->state == OFPI_RDM_UP)
        path->state = OFPI_RDM_OVER;
    /* If the endpoint is its own peer, the end of one path ends both. */
    path = ofpi_rdm_peer_of(peer)->path;
    if (ofpi_rdm_peer_of(peer)->meet == OFPI_MEET_CONNECTING)
        what.event = OFPI_MEET_REJECT;
    else if (!ofp_list_empty(&path->waiting))
        what.facts = OFPI_MEET_UNREAD;
    handle_meeting_event(peer, &what);
}

void ofpi_rdm_path_drained(struct ofpi_rdm_path *path)
{
    struct ofp_peer *peer = find_met_peer(path);

    if (peer && ofpi_rdm_peer_of(peer)->meet == OFPI_MEET_DRAINING && ofp_list_empty(&path->waiting))
        handle_meeting_event(peer, &(struct meeting_event){.event = OFPI_MEET_DRAINED, .end = path->end});
}

void ofpi_rdm_path_failed(struct ofpi_rdm_path *path)
{
    struct ofpi_path_end end = {.error = path->error, .text = path->why};

    ofpi_rdm_requests_discard(path);
    if (path->why && path->base.peer)
        path->endpoint->core->log(OFP_LOG_WARNING, path->endpoint->provider, "endpoint %u: peer %u: %s",
                                  path->endpoint->base->id, path->base.peer->index, path->why);
    ofpi_rdm_broken(&path->base, &end);
}
