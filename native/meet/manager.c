/* SPDX-License-Identifier: BSD-3-Clause */
#include "meet/manager.h"

#include <errno.h>

#include "ofipy/services.h"

/* A meeting event, and everything that is known with it. */
struct meeting_event {
    enum ofpi_meet_event event;
    unsigned facts;
    void *request;               /* REQUEST */
    struct ofpi_meeting_end end; /* the reason, if the event ends a connection or an attempt */
};

static void handle_event_in_state(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, enum ofpi_meet_state state,
                                  const struct meeting_event *what);

static enum ofpi_meet_state find_state(const struct ofpi_meeting_ops *ops, const struct ofp_peer *peer)
{
    const struct ofpi_meeting *meeting = ops->find(peer);

    return meeting ? (enum ofpi_meet_state)meeting->state : OFPI_MEET_IDLE;
}

static void handle_event(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, const struct meeting_event *what)
{
    handle_event_in_state(ops, peer, find_state(ops, peer), what);
}

/* Without an object there is nothing to store: the state is IDLE. */
static void store_state(const struct ofpi_meeting_ops *ops, const struct ofp_peer *peer, uint8_t state)
{
    struct ofpi_meeting *meeting = ops->find(peer);

    if (meeting)
        meeting->state = state;
}

static bool can_try_again(int error) { return error == EAGAIN || ofpi_meet_is_shortage(error); }

struct ofpi_meeting_end ofpi_meeting_end_build(int error, const char *text)
{
    return (struct ofpi_meeting_end){.error = error == EAGAIN ? ETIMEDOUT : error,
                                     .absent = error == ECONNREFUSED,
                                     .deferred = can_try_again(error),
                                     .text = text[0] ? text : NULL};
}

/* Our request was not sent: `error` is a negative errno. */
static void fail_request(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, int error, const char *text)
{
    handle_event_in_state(
        ops, peer, OFPI_MEET_CONNECTING,
        &(struct meeting_event){.event = OFPI_MEET_FAIL, .end = ofpi_meeting_end_build(-error, text)});
}

/* Open a connection. 0, or a negative errno. After a shortage the core is told already, and the result is 0. */
static int request_connection(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, char *text, size_t text_size)
{
    /* A peer that called over one of several lanes may be known by others alone. */
    int result = peer->address ? ops->dial(peer, text, text_size) : -EHOSTUNREACH;

    /* The transport may have no object before it dials. */
    if (result >= 0)
        store_state(ops, peer, OFPI_MEET_CONNECTING);
    if (result < 0 && !can_try_again(-result))
        return result;
    if (result < 0)
        fail_request(ops, peer, result, text);
    else if (result == OFPI_MEETING_CONFIRMED)
        ofpi_meeting_answered(ops, peer, NULL);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- acts */

static void execute_dial(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer)
{
    char text[OFP_TEXT_MAX] = "";
    int result = request_connection(ops, peer, text, sizeof(text));

    if (result)
        fail_request(ops, peer, result, text);
}

static void execute_accept(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, void *request)
{
    int result = ops->accept(peer, request);

    /* Operations may wait for our own request, which the peer's request replaced. After a loss the core waits for none. */
    if (result < 0) {
        handle_event_in_state(
            ops, peer, OFPI_MEET_ACCEPTED,
            &(struct meeting_event){.event = OFPI_MEET_SHORTAGE,
                                    .facts = peer->state == OFP_PEER_CONNECTING ? OFPI_MEET_WANTED : 0});
        return;
    }
    /* The core drops a peer that it loses, and clears its private part when it connects again. */
    store_state(ops, peer, OFPI_MEET_ACCEPTED);
    if (result == OFPI_MEETING_CONFIRMED)
        ofpi_meeting_confirmed(ops, peer);
}

static void execute_probe(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    if (!ops->probe(peer, end))
        handle_event(ops, peer, &(struct meeting_event){.event = OFPI_MEET_CLOSED, .end = *end});
}

/*
 * Decide on an event, then execute the acts in the order of enum ofpi_meet_act. An act may cause a further event, so
 * the state is set before the acts.
 */
static void handle_event_in_state(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, enum ofpi_meet_state state,
                                  const struct meeting_event *what)
{
    struct ofpi_meet_decision decision = ofpi_meet_decision_find(state, what->event, what->facts);

    store_state(ops, peer, decision.next);
    if (decision.acts & OFPI_MEET_DO_LOSE)
        ops->lose(peer, &what->end);
    else if (decision.acts & OFPI_MEET_DO_CLOSE)
        ops->close(peer);
    if (decision.acts & OFPI_MEET_DO_DRAIN)
        ops->drain(peer, &what->end);
    if (decision.acts & OFPI_MEET_DO_PROBE)
        execute_probe(ops, peer, &what->end);
    if (decision.acts & OFPI_MEET_DO_PUT_OFF)
        ops->refuse(peer, what->request);
    if (decision.acts & OFPI_MEET_DO_ACCEPT)
        execute_accept(ops, peer, what->request);
    if (decision.acts & OFPI_MEET_DO_CONNECT)
        execute_dial(ops, peer);
    if (decision.acts & OFPI_MEET_DO_USE)
        ops->use(peer);
}

/* ---------------------------------------------------------------------------------------------------------- reports */

void ofpi_meeting_report_loss(struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    if (end->deferred)
        ofp_peer_deferred(peer, end->error, end->text);
    else if (end->absent)
        ofp_peer_absent(peer, end->text);
    else
        ofp_peer_lost(peer, end->error, end->process_gone, end->text);
}

int ofpi_meeting_start(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, char *text, size_t text_size)
{
    struct ofpi_meet_decision decision = ofpi_meet_decision_find(find_state(ops, peer), OFPI_MEET_CONNECT, 0);
    int result;

    store_state(ops, peer, decision.next);
    result = request_connection(ops, peer, text, text_size);
    if (result)
        store_state(ops, peer, OFPI_MEET_IDLE);
    return result;
}

void ofpi_meeting_requested(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, void *request, unsigned facts)
{
    static const struct ofpi_meeting_end renewed = {
        .error = OFP_EPEERLOST, .process_gone = true, .text = "another endpoint has taken the peer's address"};
    static const struct ofpi_meeting_end again = {.error = ECONNRESET, .text = "the peer opened a new connection"};

    handle_event(ops, peer,
                 &(struct meeting_event){.event = OFPI_MEET_REQUEST,
                                         .facts = facts,
                                         .request = request,
                                         .end = facts & OFPI_MEET_RENEWED ? renewed : again});
}

void ofpi_meeting_answered(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer,
                           const struct ofpi_meeting_end *end)
{
    struct meeting_event what = {.event = OFPI_MEET_ACCEPT};

    if (end)
        what = (struct meeting_event){.event = OFPI_MEET_FAIL, .end = *end};
    handle_event(ops, peer, &what);
}

void ofpi_meeting_confirmed(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer)
{
    handle_event(ops, peer, &(struct meeting_event){.event = OFPI_MEET_CONFIRM});
}

void ofpi_meeting_ended(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, bool unread,
                        const struct ofpi_meeting_end *end)
{
    struct meeting_event what = {.event = end->unsure ? OFPI_MEET_BROKEN : OFPI_MEET_CLOSED, .end = *end};

    if (find_state(ops, peer) == OFPI_MEET_CONNECTING)
        what.event = OFPI_MEET_FAIL;
    else if (unread)
        what.facts = OFPI_MEET_UNREAD;
    handle_event(ops, peer, &what);
}

void ofpi_meeting_drained(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, const struct ofpi_meeting_end *end)
{
    handle_event(ops, peer, &(struct meeting_event){.event = OFPI_MEET_DRAINED, .end = *end});
}
