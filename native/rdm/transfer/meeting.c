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
/* Time for which packets of a lost peer wait for space. */
#define PATIENCE (1000 * MILLISECOND)

static const struct ofpi_meeting_ops meeting_ops;

static uint64_t read_peer_clock(const struct ofp_peer *peer)
{
    return ofpi_rdm_endpoint_of(peer->endpoint)->core->now();
}

/* ----------------------------------------------------------------------------------------------------------- timers */

static void meeting_timer_expired(struct ofp_timer *timer, uint64_t now)
{
    struct ofp_peer *peer = OFP_CONTAINER_OF(timer, struct ofpi_rdm_peer, timer)->base;

    (void)now;
    /* The time for draining is over, even if packets are left. */
    if (ofpi_rdm_peer_of(peer)->meeting.state == OFPI_MEET_DRAINING)
        ofpi_meeting_drained(&meeting_ops, peer, &ofpi_rdm_peer_of(peer)->path->end);
    else
        ofpi_meeting_answered(&meeting_ops, peer, &(struct ofpi_meeting_end){.error = ETIMEDOUT});
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
    self->meeting.state = OFPI_MEET_IDLE;
}

static struct ofpi_meeting *find_meeting(const struct ofp_peer *peer) { return &ofpi_rdm_peer_of(peer)->meeting; }

static int request_path(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(peer->endpoint);
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);
    struct ofpi_rdm_path *path = ofpi_rdm_path_create(endpoint, peer);
    uint8_t hello[OFPI_RDM_HELLO_SIZE];
    int result;

    if (!path)
        return -ENOBUFS;
    OFP_CHECK(self->meeting.state == OFPI_MEET_CONNECTING && !self->path);
    path->opened = true;
    ofpi_rdm_hello_write(path, hello);
    result = endpoint->channel.ops->connect(&path->base, hello, sizeof(hello), text, text_size);
    if (result) {
        ofpi_rdm_path_free(path);
        return result;
    }
    self->path = path;
    start_meeting_timer(peer, read_peer_clock(peer) + endpoint->connect_timeout);
    return 0;
}

/* A request for a path, as the manager passes it on. */
struct path_request {
    const struct ofpi_path_request *asked;
    const struct ofpi_rdm_hello *hello;
};

static void log_deferral(const struct ofpi_rdm_endpoint *endpoint, enum ofp_log_level level, const char *why)
{
    endpoint->core->log(level, endpoint->provider, "endpoint %u puts a caller off: %s", endpoint->base->id, why);
}

/* NULL: there is no memory or buffer for a path. The request was answered or is invalid. */
static struct ofpi_rdm_path *accept_path(struct ofp_peer *peer, const struct path_request *request)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(peer->endpoint);
    struct ofpi_rdm_path *path = ofpi_rdm_path_create(endpoint, peer);
    uint8_t hello[OFPI_RDM_HELLO_SIZE];

    if (!path) {
        log_deferral(endpoint, OFP_LOG_INFO, "no packet buffers or memory are left for its connection");
        endpoint->channel.ops->refuse(&endpoint->channel, request->asked->id, OFPI_REFUSE_LATER);
        return NULL;
    }
    ofpi_rdm_hello_store(path, request->hello);
    ofpi_rdm_hello_write(path, hello);
    if (endpoint->channel.ops->accept(&path->base, request->asked->id, hello, sizeof(hello)) == 0)
        return path;
    ofpi_rdm_path_free(path);
    return NULL;
}

static int accept_path_request(struct ofp_peer *peer, void *request)
{
    struct ofpi_rdm_path *path = accept_path(peer, request);
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);

    OFP_CHECK(!self->path);
    if (!path)
        return -ENOBUFS;
    /* The timer is that of our own request, which was replaced or put off. */
    stop_meeting_timer(peer);
    if (peer->state != OFP_PEER_CONNECTING)
        ofp_peer_connecting(peer);
    self->base = peer;
    self->path = path;
    return 0;
}

static void report_peer_up(struct ofp_peer *peer)
{
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);

    OFP_CHECK(self->meeting.state == OFPI_MEET_UP && self->path->base.peer == peer &&
              self->path->state != OFPI_RDM_DROPPED);
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

static void drain_path(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    struct ofpi_rdm_path *path = ofpi_rdm_peer_of(peer)->path;

    OFP_CHECK(path->base.peer == peer);
    path->state = OFPI_RDM_OVER;
    path->end = *end;
    /* The text belongs to the caller and is not valid later. */
    path->end.text = NULL;
    start_meeting_timer(peer, read_peer_clock(peer) + PATIENCE);
    ofpi_rdm_path_schedule_now(path);
}

static bool probe_peer(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    struct ofpi_rdm_path *path = ofpi_rdm_peer_of(peer)->path;
    const struct ofpi_channel_ops *ops = path->base.channel->ops;

    (void)end;
    path->state = OFPI_RDM_OVER;
    /* A peer that only connects has no listener that could answer. */
    if (!ops->probe || peer->connects_only)
        return false;
    ops->probe(&path->base);
    return true;
}

static void put_request_off(struct ofp_peer *peer, void *request)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(peer->endpoint);
    uint64_t id = ((const struct path_request *)request)->asked->id;

    if (ofpi_rdm_peer_of(peer)->meeting.state == OFPI_MEET_ACCEPTED)
        ofpi_rdm_peer_of(peer)->path->put_off = true;
    /* Crossing requests and restarted peers are usual, so the level is DEBUG. */
    log_deferral(endpoint, OFP_LOG_DEBUG, "this side connects to it, has accepted it, or reads its last messages");
    endpoint->channel.ops->refuse(&endpoint->channel, id, OFPI_REFUSE_LATER);
}

static void close_unused_path(struct ofp_peer *peer) { abandon_both_paths(ofpi_rdm_peer_of(peer)); }

static const struct ofpi_meeting_ops meeting_ops = {
    .find = find_meeting,
    .dial = request_path,
    .accept = accept_path_request,
    .refuse = put_request_off,
    .close = close_unused_path,
    .lose = ofpi_meeting_report_loss,
    .drain = drain_path,
    .probe = probe_peer,
    .use = report_peer_up,
};

/* --------------------------------------------------------------------------------------------- requests of the core */

int ofpi_rdm_peer_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    if (peer->connects_only) {
        snprintf(text, text_size,
                 "nobody can connect to it: it connects to others, and is answered on that connection, "
                 "which there is none of now");
        return -EHOSTUNREACH;
    }
    ofpi_rdm_peer_of(peer)->base = peer;
    return ofpi_meeting_start(&meeting_ops, peer, text, text_size);
}

/* -------------------------------------------------------------------------------------------- events of the channel */

/* The endpoint is its own peer: what it sends by one path arrives by the other. */
static void accept_own_request(struct ofp_peer *peer, const struct path_request *request)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(peer->endpoint);
    struct ofpi_rdm_peer *self = ofpi_rdm_peer_of(peer);

    if (self->meeting.state == OFPI_MEET_CONNECTING && !self->other)
        self->other = accept_path(peer, request);
    else
        endpoint->channel.ops->refuse(&endpoint->channel, request->asked->id, OFPI_REFUSE);
}

/*
 * A peer that requests again has given up the path that we accepted before. A device's manager may need more than a
 * minute to report that. The first further request is put off, since messages may be on that path.
 */
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
    else if (path && path->put_off && path->state == OFPI_RDM_BEGUN)
        facts |= OFPI_MEET_GIVEN_UP;
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
    struct path_request request = {asked, &hello};
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
        log_deferral(endpoint, OFP_LOG_INFO, "no memory is left for a peer");
        channel->ops->refuse(channel, asked->id, OFPI_REFUSE_LATER);
        return;
    }
    if (ofpi_rdm_request_is_own(endpoint, &hello)) {
        accept_own_request(peer, &request);
        return;
    }
    ofpi_meeting_requested(&meeting_ops, peer, &request, compute_request_facts(peer, asked, &hello));
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
    if (!error)
        ofpi_rdm_hello_store(path, &hello);
    ofpi_meeting_answered(&meeting_ops, peer, error ? &(struct ofpi_meeting_end){.error = -error, .text = text} : NULL);
}

void ofpi_rdm_refused(struct ofpi_path *base, const struct ofpi_meeting_end *end)
{
    struct ofp_peer *peer = find_met_peer(ofpi_rdm_path_of(base));

    if (peer)
        ofpi_meeting_answered(&meeting_ops, peer, end);
}

void ofpi_rdm_confirmed(struct ofpi_path *base)
{
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);
    struct ofp_peer *peer = find_met_peer(path);

    /* A packet may have confirmed the path already. A path that we requested is accepted, not confirmed. */
    if (peer && !path->opened && path->state == OFPI_RDM_BEGUN)
        ofpi_meeting_confirmed(&meeting_ops, peer);
}

void ofpi_rdm_broken(struct ofpi_path *base, const struct ofpi_meeting_end *end)
{
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);
    struct ofp_peer *peer = base->peer;

    if (!peer)
        return;
    if (path->state == OFPI_RDM_UP)
        path->state = OFPI_RDM_OVER;
    /* If the endpoint is its own peer, the end of one path ends both. */
    path = ofpi_rdm_peer_of(peer)->path;
    ofpi_meeting_ended(&meeting_ops, peer, !ofp_list_empty(&path->waiting), end);
}

void ofpi_rdm_path_drained(struct ofpi_rdm_path *path)
{
    struct ofp_peer *peer = find_met_peer(path);

    if (peer && ofpi_rdm_peer_of(peer)->meeting.state == OFPI_MEET_DRAINING && ofp_list_empty(&path->waiting))
        ofpi_meeting_drained(&meeting_ops, peer, &path->end);
}

void ofpi_rdm_path_failed(struct ofpi_rdm_path *path)
{
    struct ofpi_meeting_end end = {.error = path->error, .text = path->why};

    ofpi_rdm_requests_discard(path);
    if (path->why && path->base.peer)
        path->endpoint->core->log(OFP_LOG_WARNING, path->endpoint->provider, "endpoint %u: peer %u: %s",
                                  path->endpoint->base->id, path->base.peer->index, path->why);
    ofpi_rdm_broken(&path->base, &end);
}
