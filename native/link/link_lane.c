/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_lane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "ofipy/ofp.h"
#include "object/domain.h"

#define TO_BE_FOUND                                                                                                    \
    "open it there with node=, OFIPY_INTERFACE or OFIPY_AUTH_KEY_FILE, since it listens to the network only when asked"

static bool is_lane_active(const struct link_lane *lane)
{
    return lane->base.state == OFP_PEER_CONNECTING || lane->base.state == OFP_PEER_UP;
}

/* For checks alone: a function would be unused where they are compiled out. */
#define IS_DOMAIN_HELD(outer) ofpi_domain_is_held((struct ofpi_domain *)(outer)->endpoint->domain)

static uint32_t count_lanes(const struct ofp_peer *outer) { return link_endpoint_of(outer->endpoint)->set->count; }

/* -------------------------------------------------------------------------------------------------- states of one lane */

static void start_lane(struct link_lane *lane)
{
    const struct link_endpoint *endpoint = link_endpoint_of(lane->outer->endpoint);
    const struct link_part *part = &endpoint->set->parts[link_inner_of(lane->base.endpoint)->number];

    OFPI_CHECK(IS_DOMAIN_HELD(lane->outer) && !is_lane_active(lane));
    if (lane->base.state == OFP_PEER_LOST && !part->ops->peers_persist) {
        memset(lane->base.private, 0, part->ops->peer_size);
        lane->base.incarnation = 0;
    }
    lane->base.index = lane->outer->index;
    lane->base.proven = false;
    lane->base.cipher = 0;
    lane->base.state = OFP_PEER_CONNECTING;
}

static void end_lane(struct link_lane *lane)
{
    OFPI_CHECK(IS_DOMAIN_HELD(lane->outer) && is_lane_active(lane));
    lane->base.state = OFP_PEER_LOST;
    lane->base.endpoint->ops->peer_down(&lane->base);
}

void link_lanes_disconnect(struct ofp_peer *outer)
{
    const struct link_peer *peer = link_peer_of(outer);

    for (uint32_t i = 0; i < count_lanes(outer); i++) {
        struct link_lane *lane = link_lane_find(outer, i);

        lane->heard = false;
        if (lane == peer->successor)
            continue;
        if (lane->base.state == OFP_PEER_UP || (is_lane_active(lane) && (lane == peer->trying || !peer->keeps_calls)))
            end_lane(lane);
    }
}

/* ------------------------------------------------------------------------------------------------------------ reasons */

void link_lanes_clear_attempts(struct link_peer *peer)
{
    for (uint32_t i = 0; i < count_lanes(peer->outer); i++)
        link_lane_find(peer->outer, i)->failed = false;
    peer->chosen = peer->trying = peer->heard = NULL;
    peer->process_gone = peer->absent = peer->refused = peer->absent_here = peer->deferred = false;
    peer->error = 0;
    free(peer->why);
    free(peer->remedy);
    peer->why = peer->remedy = NULL;
}

/* Append to a text that the peer owns, unless the text contains the addition already. */
static void append_reason(char **owned, const char *between, const char *text)
{
    char whole[OFP_TEXT_MAX];

    if (*owned && strstr(*owned, text))
        return;
    snprintf(whole, sizeof(whole), "%.160s%s%.200s", *owned ? *owned : "", *owned ? between : "", text);
    free(*owned);
    *owned = strdup(whole);
}

/* The error of the peer gives each lane's reason, then the remedies once. */
static void store_reason(struct link_peer *peer, struct link_lane *lane, int error, bool process_gone, const char *text)
{
    char why[OFP_TEXT_MAX];
    const char *said = text ? text : ofp_strerror(error), *remedy = strstr(said, "; ");

    lane->failed = true;
    snprintf(why, sizeof(why), "%s: %.*s", link_name_of_lane(lane), remedy ? (int)(remedy - said) : 400, said);
    append_reason(&peer->why, ", and ", why);
    if (remedy)
        append_reason(&peer->remedy, ", or ", remedy + strlen("; "));
    /* Of several lanes' errors the end of the process is reported first, then that no version is common, then the last one. */
    if (process_gone || (!peer->process_gone && peer->error != EPROTONOSUPPORT))
        peer->error = error;
    peer->process_gone |= process_gone;
}

static void mark_peer_absent(struct link_peer *peer, const struct link_lane *lane)
{
    peer->absent = true;
    peer->absent_here |= !link_inner_of(lane->base.endpoint)->is_network;
}

static void describe_reasons(const struct link_peer *peer, char text[OFP_TEXT_MAX])
{
    snprintf(text, OFP_TEXT_MAX, "%s%s%s", peer->why ? peer->why : "its address has no way that leads there from here",
             peer->remedy ? "; " : "", peer->remedy ? peer->remedy : "");
}

/* ------------------------------------------------------------------------------------------------------------ choosing */

/* Warn if a preferred lane failed: the chosen lane is slower. */
static void log_lane(const struct link_peer *peer, const struct link_lane *lane)
{
    const struct ofp_peer *outer = peer->outer;
    char why[OFP_TEXT_MAX];

    describe_reasons(peer, why);
    if (peer->why)
        ofpi_log_write(
            OFP_LOG_WARNING, LINK_NAME,
            "endpoint %u reaches peer %u over %s, which is slower: each message costs several times as much (%s)",
            outer->endpoint->id, outer->index, link_name_of_lane(lane), why);
    else
        ofpi_log_write(OFP_LOG_INFO, LINK_NAME, "endpoint %u reaches peer %u over %s", outer->endpoint->id,
                       outer->index, link_name_of_lane(lane));
}

static void choose_lane(struct link_peer *peer, struct link_lane *lane)
{
    OFPI_CHECK(!peer->chosen && peer->outer->state == OFP_PEER_CONNECTING && lane->base.state == OFP_PEER_UP);
    peer->chosen = lane;
    peer->chosen_by_call = peer->trying != lane;
    if (peer->trying == lane)
        peer->trying = NULL;
    peer->outer->incarnation = lane->base.incarnation;
    peer->outer->connects_only = lane->base.connects_only;
    peer->outer->proven = lane->base.proven;
    log_lane(peer, lane);
    peer->outer->endpoint->services->peer_up(peer->outer);
}

static void report_unreachable(struct link_peer *peer)
{
    struct ofp_peer *outer = peer->outer;
    char why[OFP_TEXT_MAX];
    int error = peer->error ? peer->error : EHOSTUNREACH;
    bool process_gone = peer->process_gone, absent = peer->absent && !peer->refused;

    OFPI_CHECK(!peer->chosen && outer->state == OFP_PEER_CONNECTING);
    /* A peer that listens only within its host looks like an absent one from the network: add the remedy. */
    if (absent && !peer->absent_here)
        append_reason(&peer->remedy, ", or ", TO_BE_FOUND);
    describe_reasons(peer, why);
    if (peer->deferred)
        outer->endpoint->services->peer_deferred(outer, error, why);
    else if (absent)
        outer->endpoint->services->peer_absent(outer, why);
    else
        outer->endpoint->services->peer_lost(outer, error, process_gone, why);
}

/* Connect one lane. False: it failed within the call, and no other lane was tried. */
static bool connect_lane(struct link_peer *peer, struct link_lane *lane)
{
    char text[OFP_TEXT_MAX] = "";
    int result;

    OFPI_CHECK(!peer->chosen && lane->reachable && !lane->failed && lane->outer == peer->outer);
    peer->trying = lane;
    start_lane(lane);
    result = lane->base.endpoint->ops->connect(&lane->base, text, sizeof(text));
    if (!result || lane->base.state != OFP_PEER_CONNECTING)
        return true;
    end_lane(lane);
    if (result == -ECONNREFUSED)
        mark_peer_absent(peer, lane);
    store_reason(peer, lane, -result, false, text[0] ? text : NULL);
    return false;
}

void link_lanes_connect(struct ofp_peer *outer)
{
    struct link_peer *peer = link_peer_of(outer);

    for (uint32_t i = 0; i < count_lanes(outer); i++) {
        struct link_lane *lane = link_lane_find(outer, i);

        if (!lane->reachable || lane->failed)
            continue;
        /* The peer calls by this lane already: wait for it. */
        if (is_lane_active(lane)) {
            peer->trying = lane;
            return;
        }
        if (connect_lane(peer, lane))
            return;
    }
    report_unreachable(peer);
}

/*
 * A lane has ended that this side, or the peer, was connecting. Choose one that is UP, else try the next, unless the
 * core is to repeat the attempt. A peer that called with a version that this side does not speak may be spoken to by
 * another lane: try those as if the call had been ours.
 */
static void resume_lanes(struct link_peer *peer)
{
    bool waits = false, ours = peer->trying != NULL || peer->error == EPROTONOSUPPORT;

    OFPI_CHECK(!peer->chosen && peer->outer->state == OFP_PEER_CONNECTING);
    peer->trying = NULL;
    for (uint32_t i = 0; i < count_lanes(peer->outer); i++) {
        struct link_lane *lane = link_lane_find(peer->outer, i);

        if (lane->base.state == OFP_PEER_UP) {
            choose_lane(peer, lane);
            return;
        }
        waits |= lane->base.state == OFP_PEER_CONNECTING;
    }
    if (ours && !peer->deferred)
        link_lanes_connect(peer->outer);
    else if (!waits)
        report_unreachable(peer);
}

const struct link_lane *link_lane_choose(const struct ofp_peer *outer)
{
    const struct link_peer *peer = link_peer_of(outer);

    if (peer->chosen)
        return peer->chosen;
    for (uint32_t i = 0; i < count_lanes(outer); i++)
        if (link_lane_find(outer, i)->reachable && !link_lane_find(outer, i)->failed)
            return link_lane_find(outer, i);
    return NULL;
}

const struct ofp_peer *link_lane_choose_peer(const struct ofp_peer *outer)
{
    const struct link_lane *lane = link_lane_choose(outer);

    return lane ? &lane->base : NULL;
}

void link_lanes_query_security(const struct ofp_peer *outer, bool *proven, uint16_t *cipher)
{
    const struct link_lane *chosen = link_peer_of(outer)->chosen;

    OFPI_CHECK(outer->state == OFP_PEER_UP && chosen);
    *proven = chosen->base.proven;
    *cipher = chosen->base.cipher;
    for (uint32_t i = 0; i < count_lanes(outer); i++) {
        const struct ofp_peer *lane = &link_lane_find(outer, i)->base;

        if (lane->state != OFP_PEER_UP)
            continue;
        *proven &= lane->proven;
        *cipher = lane->cipher ? *cipher : 0;
    }
}

/* ----------------------------------------------------------------------------------------------- calls from providers */

void link_lane_connection_begun(struct ofp_peer *inner)
{
    struct link_lane *lane = link_lane_of(inner);
    struct ofp_peer *outer = lane->outer;

    if (is_lane_active(lane))
        return;
    if (outer->state != OFP_PEER_CONNECTING && outer->state != OFP_PEER_UP) {
        link_lanes_clear_attempts(link_peer_of(outer));
        outer->endpoint->services->peer_connecting(outer);
    }
    start_lane(lane);
}

void link_lane_connected(struct ofp_peer *inner)
{
    struct link_lane *lane = link_lane_of(inner);
    struct link_peer *peer = link_peer_of(lane->outer);

    if (inner->state != OFP_PEER_CONNECTING) {
        ofpi_log_write(OFP_LOG_ERROR, link_name_of_lane(lane), "peer %u: it is up without having been called",
                       inner->index);
        return;
    }
    inner->state = OFP_PEER_UP;
    if (lane->outer->state == OFP_PEER_CONNECTING && (!peer->trying || peer->trying == lane))
        choose_lane(peer, lane);
}

/*
 * Report the loss. If the peer calls while the core ends its operations, or has called by `successor` already, a new
 * incarnation begins. `successor` carries no operation of ours; it may be NULL.
 */
static void report_loss(struct link_peer *peer, struct link_lane *successor, int error, bool process_gone,
                        const char *text)
{
    struct ofp_peer *outer = peer->outer;

    OFPI_CHECK(outer->state == OFP_PEER_UP && peer->chosen && !peer->keeps_calls && successor != peer->chosen);
    peer->keeps_calls = true;
    peer->successor = successor;
    outer->endpoint->services->peer_lost(outer, error, process_gone, text);
    peer->keeps_calls = false;
    peer->successor = NULL;
    if (successor) {
        outer->endpoint->services->peer_connecting(outer);
        choose_lane(peer, successor);
        return;
    }
    for (uint32_t i = 0; i < count_lanes(outer); i++)
        if (link_lane_find(outer, i)->base.state == OFP_PEER_CONNECTING && outer->state == OFP_PEER_LOST)
            outer->endpoint->services->peer_connecting(outer);
}

/*
 * The peer sends by another lane than before, or than the one by which it called: it has lost us, and is another
 * incarnation, though the lane that it used is silent. Operations of ours that are in flight on the new lane would
 * dangle: then the loss waits for the report of that lane's provider.
 */
static bool is_another_incarnation(const struct link_peer *peer, const struct link_lane *lane)
{
    if (lane == peer->chosen)
        return false;
    return peer->heard ? peer->heard != lane : peer->chosen_by_call;
}

void link_lane_message_arrived(struct ofp_peer *inner)
{
    struct link_lane *lane = link_lane_of(inner);
    struct link_peer *peer = link_peer_of(lane->outer);

    if (inner->state != OFP_PEER_UP)
        return;
    if (lane->outer->state == OFP_PEER_UP && is_another_incarnation(peer, lane)) {
        report_loss(peer, lane, ECONNRESET, false, "it lost the connection, and calls by another way");
    }
    if (lane->outer->state == OFP_PEER_CONNECTING)
        choose_lane(peer, lane);
    if (lane->outer->state == OFP_PEER_UP) {
        if (peer->heard)
            peer->heard->heard = false;
        peer->heard = lane;
        lane->heard = true;
    }
}

/* A lane ended before the outer peer was UP. */
static void lane_failed(struct link_lane *lane, int error, bool process_gone, const char *text)
{
    struct link_peer *peer = link_peer_of(lane->outer);

    OFPI_CHECK(lane->base.state == OFP_PEER_LOST);
    if (lane->outer->state != OFP_PEER_CONNECTING)
        return;
    store_reason(peer, lane, error, process_gone, text);
    if (!peer->trying || peer->trying == lane)
        resume_lanes(peer);
}

void link_lane_absence_found(struct ofp_peer *inner, const char *text)
{
    struct link_lane *lane = link_lane_of(inner);

    if (inner->state != OFP_PEER_CONNECTING)
        return;
    end_lane(lane);
    mark_peer_absent(link_peer_of(lane->outer), lane);
    lane_failed(lane, ECONNREFUSED, false, text);
}

void link_lane_deferral_found(struct ofp_peer *inner, int error, const char *text)
{
    struct link_lane *lane = link_lane_of(inner);

    if (inner->state != OFP_PEER_CONNECTING)
        return;
    end_lane(lane);
    link_peer_of(lane->outer)->deferred = true;
    lane_failed(lane, error, false, text);
}

/*
 * Whether operations of ours, or messages of the peer, use a lane: what is lost with it must not be missing within an
 * incarnation. A peer that called by the chosen lane sends by it; another lane is left of an attempt that it gave up.
 */
static bool is_lane_used(const struct link_peer *peer, const struct link_lane *lane)
{
    if (lane == peer->chosen || lane == peer->heard)
        return true;
    return lane->base.state == OFP_PEER_UP && !peer->heard && !peer->chosen_by_call;
}

/* The lane by which the peer has called since, if it had called by the one that is lost. NULL: none. */
static struct link_lane *find_newer_call(const struct link_peer *peer, const struct link_lane *lost)
{
    for (uint32_t i = 0; i < count_lanes(peer->outer) && peer->chosen_by_call; i++) {
        struct link_lane *lane = link_lane_find(peer->outer, i);

        if (lane->base.state == OFP_PEER_UP && lane != lost && lane != peer->chosen && lane != peer->heard)
            return lane;
    }
    return NULL;
}

void link_lane_lost(struct ofp_peer *inner, int error, bool process_gone, const char *text)
{
    struct link_lane *lane = link_lane_of(inner);
    struct ofp_peer *outer = lane->outer;
    struct link_peer *peer = link_peer_of(outer);

    if (!is_lane_active(lane))
        return;
    if (outer->state == OFP_PEER_UP && (process_gone || is_lane_used(peer, lane))) {
        report_loss(peer, process_gone ? NULL : find_newer_call(peer, lane), error, process_gone, text);
        return;
    }
    end_lane(lane);
    peer->refused = true;
    lane_failed(lane, error, process_gone, text);
}
