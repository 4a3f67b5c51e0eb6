/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/connect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "connection/channel.h"
#include "connection/reaper.h"
#include "meet/versions.h"
#include "packet/key.h"
#include "packet/log.h"
#include "packet/path.h"
#include "packet/work.h"
#include "queue/state.h"

#define RETRIES 6

/* Soft-RoCE takes a retry count of seven as unlimited, and keep-alive would never fail. */
struct rdma_conn_param verbs_path_parameters_build(const struct verbs_path *path, const uint8_t *bytes, uint8_t length)
{
    struct rdma_conn_param param = verbs_parameters_build(path->rdm->domain, path->qp, bytes, length,
                                                          path->responder_resources, path->initiator_depth);

    if (param.retry_count > RETRIES)
        param.retry_count = RETRIES;
    return param;
}

int verbs_path_pair_connect(struct verbs_path *path)
{
    const struct verbs_domain *domain = path->rdm->domain;
    int result = verbs_qp_init(domain, path->id, path->qp);

    return result ? result
                  : verbs_qp_connect(domain, path->id, path->qp, path->responder_resources, path->initiator_depth);
}

/* Once for each process. */
static void warn_of_plain_packets(void)
{
    static _Atomic bool warned;

    if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed))
        verbs_core->log(OFP_LOG_WARNING, VERBS_NAME,
                        "peers prove the key when they connect, but RDMA packets are neither encrypted nor signed: see "
                        "the page on security");
}

static void path_connected(struct verbs_path *path)
{
    /* verbs_path_accept has set it already for a path that the peer requested. */
    path->base->proven = path->rdm->challenges != NULL;
    if (path->base->proven)
        warn_of_plain_packets();
    free(path->facts);
    path->facts = NULL;
    verbs_path_key_end(path);
    path->state = VERBS_PATH_UP;
}

/* ----------------------------------------------------------------------------------------------------------- asking */

/*
 * Resolve the way to the peer, by a new id, whose events follow. A new queue pair comes first: each request states its number,
 * by which connection managers tell callers apart.
 */
static int open_path_id(struct verbs_path *path, char *text, size_t text_size)
{
    struct verbs_rdm *rdm = path->rdm;
    const struct ofp_peer *peer = path->base->peer;
    union tcp_address from = rdm->address, to;
    int result = tcp_address_parse(peer->address, peer->address_length, &to) ? -EINVAL : verbs_path_pair_open(path);

    if (!result)
        result = verbs_id_open(rdm->domain, &path->listener, &from, NULL, &path->id, text, text_size);
    if (result)
        return result;
    path->qp_context->id = path->id;
    verbs_id_set_traffic_class(path->id, peer->endpoint);
    if (verbs_calls.resolve_addr(path->id, NULL, &to.any, VERBS_RESOLVE_MS) != 0) {
        result = -errno;
        snprintf(text, text_size, "the connection manager finds no way there: %s", strerror(-result));
    }
    return result;
}

static void build_first_request(struct verbs_path *path, const uint8_t *hello, size_t length)
{
    const struct verbs_rdm *rdm = path->rdm;
    uint8_t data[VERBS_FIRST_REQUEST_MAX];

    path->request_data_length = verbs_private_data_encode(
        path->request_data, data,
        verbs_first_request_encode(data, tcp_address_get_port(&rdm->address), hello, length, rdm->challenges));
}

int verbs_path_connect(struct ofpi_path *base, const uint8_t *hello, size_t length, char *text, size_t text_size)
{
    struct verbs_path *path = verbs_path_of(base);
    int result;

    verbs_path_init(path, base, VERBS_PATH_REQUESTED, verbs_path_event_handle);
    verbs_path_key_start(path);
    build_first_request(path, hello, length);
    result = open_path_id(path, text, text_size);
    if (result)
        verbs_path_remove(path);
    return result;
}

static void report_no_listener(struct verbs_path *path)
{
    path->base->channel->user->refused(
        path->base, &(struct ofpi_meeting_end){.error = ECONNREFUSED, .absent = true, .text = "nobody listens there"});
}

static void report_rejection(struct verbs_path *path, bool later, int error, const char *why)
{
    path->base->channel->user->refused(path->base,
                                       &(struct ofpi_meeting_end){.error = error, .deferred = later, .text = why});
}

static void fail_path(struct verbs_path *path, const char *what, int error)
{
    char text[OFP_TEXT_MAX];

    snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
    if (path->state == VERBS_PATH_REQUESTED)
        report_rejection(path, false, error, text);
    else
        verbs_path_mark_failed(path, &(struct ofpi_meeting_end){.error = error, .unsure = true});
}

/*
 * Nothing has answered within VERBS_RESOLVE_MS. That may be a busy host or a lost packet, so the endpoint tries again
 * until its own deadline. Other errors are final.
 */
static void report_unresolved_path(struct verbs_path *path, int status)
{
    if (status == -ETIMEDOUT)
        report_rejection(path, true, ETIMEDOUT, "nothing answers at its address");
    else
        fail_path(path, "no way to the address", status < 0 ? -status : EHOSTUNREACH);
}

static void report_key_difference(struct verbs_path *path, enum verbs_rejection rejection)
{
    report_rejection(path, false, EACCES, verbs_key_find_text(rejection));
}

/* Replace the first request by the second, which proves the key. The id knows both GIDs. */
static void build_second_request(struct verbs_path *path)
{
    struct verbs_facts *facts = path->facts;
    const struct rdma_ib_addr *ends = &path->id->route.addr.addr.ibaddr;
    uint8_t data[VERBS_PROOF_REQUEST_SIZE], proof[OFPI_PROOF_SIZE];

    facts->caller_gid = ends->sgid;
    facts->acceptor_gid = ends->dgid;
    verbs_proof_compute(verbs_path_key_get(path), facts, VERBS_CALLER, path->qp->qp_num, proof);
    path->request_data_length = verbs_private_data_encode(
        path->request_data, data,
        verbs_second_request_encode(data, tcp_address_get_port(&facts->caller), facts, proof));
}

static void describe_challenge_version(const struct verbs_event *event, char *text, size_t text_size)
{
    const struct ofpi_versions ours = {VERBS_PROOF_VERSION, VERBS_PROOF_VERSION};
    struct ofpi_versions theirs = {0};

    if (event->data_length > 1)
        theirs = (struct ofpi_versions){event->data[1], event->data[1]};
    ofpi_versions_describe("the proof of keys over verbs", ours, theirs, text, text_size);
}

/* NULL: a later attempt may succeed, but none will with an *error (positive) and a text. */
static struct verbs_facts *create_facts(struct verbs_path *path, const struct verbs_event *event, int *error,
                                        char *text, size_t text_size)
{
    const struct ofpi_path *base = path->base;
    struct verbs_facts *facts = calloc(1, sizeof(*facts));
    struct verbs_path_request first;

    if (!facts)
        return NULL;
    if (!verbs_request_decode(path->request_data + 1, path->request_data_length - 1u, &first) || first.has_proof ||
        !verbs_challenge_decode(event->data, event->data_length, facts)) {
        *error = EPROTONOSUPPORT;
        describe_challenge_version(event, text, text_size);
        free(facts);
        return NULL;
    }
    *error = -base->channel->user->first_hello_check(path->base, facts->acceptor_hello, facts->acceptor_hello_length,
                                                     text, text_size);
    /* Without a common version the proof goes on: only then does the acceptor believe the caller's versions. */
    if (!*error || *error == EPROTONOSUPPORT) {
        *error = 0;
        facts->caller = path->rdm->address;
        facts->caller_hello_length = (uint8_t)first.hello_length;
        memcpy(facts->caller_hello, first.hello, first.hello_length);
        if (tcp_address_parse(base->peer->address, base->peer->address_length, &facts->acceptor) == 0 &&
            getrandom(facts->caller_nonce, sizeof(facts->caller_nonce), 0) == sizeof(facts->caller_nonce))
            return facts;
    }
    free(facts);
    return NULL;
}

/*
 * Request the path once more, by another id and another queue pair: a late copy of the first request would make the other
 * side's connection manager reject a second one with the same number as stale.
 */
static void request_again(struct verbs_path *path)
{
    char text[OFP_TEXT_MAX] = "";
    int result;

    verbs_path_id_close(path);
    result = open_path_id(path, text, sizeof(text));
    if (result)
        report_rejection(path, ofpi_meet_is_shortage(-result), -result, text[0] ? text : strerror(-result));
}

/* The peer has refused the key. False: there is no further one. */
static bool retry_key(struct verbs_path *path)
{
    struct verbs_facts *facts = path->facts;

    if (!facts || !verbs_path_key_advance(path))
        return false;
    build_first_request(path, facts->caller_hello, facts->caller_hello_length);
    path->facts = NULL;
    free(facts);
    request_again(path);
    return true;
}

/* The peer has a key: request the path with a proof. */
static void handle_challenge(struct verbs_path *path, const struct verbs_event *event)
{
    char text[OFP_TEXT_MAX] = "";
    int error = 0;

    if (!path->rdm->challenges) {
        report_key_difference(path, VERBS_REJECT_KEY_HERE);
        return;
    }
    if (path->facts) {
        report_rejection(path, true, ECONNREFUSED, "the peer did not wait for the proof");
        return;
    }
    path->facts = create_facts(path, event, &error, text, sizeof(text));
    if (!path->facts) {
        report_rejection(path, !error, error ? error : ECONNREFUSED, text);
        return;
    }
    request_again(path);
}

/* Whether an answer to our proof, a hello and a proof, proves the key too. The hello is stored in the facts. */
static bool is_proof_valid(struct verbs_path *path, const uint8_t *answer, size_t length, uint32_t pair_number)
{
    uint8_t proof[OFPI_PROOF_SIZE];

    return verbs_answer_decode(answer, length, path->facts, proof) &&
           verbs_proof_is_valid(verbs_path_key_get(path), path->facts, VERBS_ACCEPTOR, pair_number, proof);
}

/* Check that the peer accepts by a proof. True: it does, or this side has no key. */
static bool is_answer_proven(struct verbs_path *path, const struct verbs_event *event)
{
    uint8_t rejection = path->facts ? VERBS_REJECT_OTHER_KEY : VERBS_REJECT_KEY_HERE;

    if (!path->rdm->challenges ||
        (path->facts && is_proof_valid(path, event->data, event->data_length, event->pair_number)))
        return true;
    verbs_id_reject(path->id, &rejection, sizeof(rejection));
    report_key_difference(path, path->facts ? VERBS_REJECT_OTHER_KEY : VERBS_REJECT_KEY_THERE);
    return false;
}

static void request_path(struct verbs_path *path)
{
    struct rdma_conn_param param;

    if (path->facts)
        build_second_request(path);
    param = verbs_path_parameters_build(path, path->request_data, path->request_data_length);

    if (verbs_calls.connect(path->id, &param) != 0)
        fail_path(path, "cannot ask for a connection", errno);
}

static void path_request_answered(struct verbs_path *path, const struct verbs_event *event)
{
    size_t hello_length = event->data_length;
    int result;

    if (!is_answer_proven(path, event))
        return;
    if (path->facts)
        hello_length = path->facts->acceptor_hello_length;
    /* The values in the event are already from this side's view. */
    verbs_resources_set_limit(&path->responder_resources, event->responder_resources);
    verbs_resources_set_limit(&path->initiator_depth, event->initiator_depth);
    result = verbs_path_pair_connect(path);
    if (!result && verbs_calls.establish(path->id) != 0)
        result = -errno;
    if (result) {
        fail_path(path, "the queue pair cannot be connected", -result);
        return;
    }
    path->connected = true;
    path_connected(path);
    path->base->channel->user->accepted(path->base, event->data, hello_length);
}

/*
 * The peer's hello says which versions it speaks. A hello that this side could have accepted is a lie. If this side has
 * proved its key, the peer proves it behind its hello.
 */
static void path_rejected_as_incompatible(struct verbs_path *path, const struct verbs_event *event)
{
    const uint8_t *hello = event->data + 1;
    size_t length = event->data_length - 1u;
    char text[OFP_TEXT_MAX] = "";
    int error;

    if (path->facts && !is_proof_valid(path, hello, length, VERBS_NO_PAIR)) {
        report_key_difference(path, VERBS_REJECT_OTHER_KEY);
        return;
    }
    if (path->facts)
        length = path->facts->acceptor_hello_length;
    error = path->base->channel->user->first_hello_check(path->base, hello, length, text, sizeof(text));
    report_rejection(path, false, error ? -error : ECONNREFUSED, error ? text : "the peer refused");
}

/* Without private data the peer's connection manager rejects, for its program, a request that the program never got. */
static void path_rejected_by_program(struct verbs_path *path, const struct verbs_event *event)
{
    enum verbs_rejection rejection = event->data_length ? event->data[0] : VERBS_REJECT_LATER;

    if (rejection == VERBS_REJECT_CHALLENGE)
        handle_challenge(path, event);
    else if (rejection == VERBS_REJECT_VERSION)
        path_rejected_as_incompatible(path, event);
    else if (rejection == VERBS_REJECT_OTHER_KEY && retry_key(path))
        return;
    else if (rejection >= VERBS_REJECT_KEY_HERE && rejection <= VERBS_REJECT_OTHER_KEY)
        report_key_difference(path, rejection);
    else if (rejection == VERBS_REJECT)
        report_rejection(path, false, ECONNREFUSED, "the peer refused");
    else
        report_rejection(path, true, ECONNREFUSED,
                         event->data_length ? "the peer put it off: its log at INFO says why"
                                            : "the peer's host put it off");
}

/* The peer's connection manager knows the number of our queue pair from an earlier connection. */
static void path_request_stale(struct verbs_path *path)
{
    verbs_core->log(OFP_LOG_INFO, VERBS_NAME,
                    "endpoint %u: a connection was refused as stale, for queue pair %u; so far %" PRIu64,
                    path->rdm->channel->endpoint->id, path->number, ++path->rdm->stale);
    report_rejection(path, true, ECONNREFUSED, "the other side's connection manager has an earlier connection");
}

static void path_request_rejected(struct verbs_path *path, const struct verbs_event *event)
{
    char text[128];

    if (event->status == VERBS_REJECTED_BY_PROGRAM) {
        path_rejected_by_program(path, event);
    } else if (event->status == VERBS_REJECTED_NO_SERVICE) {
        report_no_listener(path);
    } else if (event->status == VERBS_REJECTED_STALE) {
        path_request_stale(path);
    } else {
        snprintf(text, sizeof(text), "the other side's connection manager refused, for its reason %d", event->status);
        report_rejection(path, false, ECONNREFUSED, text);
    }
}

/* ----------------------------------------------------------------------------------------------------------- events */

static void path_confirmed(struct verbs_path *path)
{
    if (path->state != VERBS_PATH_ACCEPTED)
        return;
    OFP_CHECK(path->connected && !path->stopped);
    path_connected(path);
    path->base->channel->user->confirmed(path->base);
}

static void handle_connecting_event(struct verbs_path *path, const struct verbs_event *event)
{
    switch (event->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (verbs_calls.resolve_route(path->id, VERBS_RESOLVE_MS) != 0)
            fail_path(path, "no route", errno);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        request_path(path);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        path_request_answered(path, event);
        break;
    case RDMA_CM_EVENT_REJECTED:
        path_request_rejected(path, event);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        report_unresolved_path(path, event->status);
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
        fail_path(path, "the other side does not answer", event->status < 0 ? -event->status : ETIMEDOUT);
        break;
    default:
        fail_path(path, "the connection failed", event->status < 0 ? -event->status : ECONNABORTED);
        break;
    }
}

/* We accepted, and the caller rejects our answer: it has a key, or another one. */
static bool is_rejected_for_key(const struct verbs_path *path, const struct verbs_event *event)
{
    return path->state == VERBS_PATH_ACCEPTED && event->type == RDMA_CM_EVENT_REJECTED && event->data_length &&
           event->data[0] >= VERBS_REJECT_KEY_HERE && event->data[0] <= VERBS_REJECT_OTHER_KEY;
}

static void path_answer_rejected(struct verbs_path *path, const struct verbs_event *event)
{
    const char *why = verbs_key_find_text(event->data[0]);

    verbs_key_difference_log(path->rdm, path->id, why);
    verbs_path_mark_failed(path, &(struct ofpi_meeting_end){.error = EACCES, .text = why});
}

/* The process, the endpoint or only this path has ended. A probe tells which. */
static void path_disconnected(struct verbs_path *path)
{
    verbs_path_mark_failed(path, &(struct ofpi_meeting_end){.error = ECONNRESET, .unsure = true});
}

static void path_answer_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    path_disconnected(OFP_CONTAINER_OF(timer, struct verbs_path, answer));
}

/* Wait for the failed completion of a read or write that the peer rejected. */
static void start_answer_timer(struct verbs_path *path)
{
    if (path->answer.position)
        return;
    path->answer.expired = path_answer_expired;
    path->answer.deadline = verbs_core->now() + VERBS_ANSWER_NS;
    verbs_core->timer_start(path->rdm->domain->base, &path->answer);
}

void verbs_path_event_handle(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_path *path = OFP_CONTAINER_OF(listener, struct verbs_path, listener);

    if (path->state == VERBS_PATH_REQUESTED)
        handle_connecting_event(path, event);
    else if (event->type == RDMA_CM_EVENT_ESTABLISHED)
        path_confirmed(path);
    else if (is_rejected_for_key(path, event))
        path_answer_rejected(path, event);
    else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
        verbs_path_mark_failed(path, &(struct ofpi_meeting_end){.error = ENODEV, .text = "the device was removed"});
    else if (event->type == RDMA_CM_EVENT_DISCONNECTED && path->moves && path->state == VERBS_PATH_UP)
        start_answer_timer(path);
    else if (event->type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
        path_disconnected(path);
}
