/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_way.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "match/receive_context.h"
#include "object/endpoint.h"
#include "ofipy/ofp.h"

#define TO_BE_FOUND                                                                                                    \
    "open it there with node=, OFIPY_INTERFACE or OFIPY_AUTH_KEY_FILE, since it listens to the network only when asked"

static bool is_active(const struct link_way *way)
{
    return way->base.state == OFP_PEER_CONNECTING || way->base.state == OFP_PEER_UP;
}

static uint32_t count_of(const struct ofp_peer *outer) { return link_endpoint_of(outer->endpoint)->set->count; }

/* ------------------------------------------------------------------------------------------------------- states of one */

static void begin(struct link_way *way)
{
    const struct link_endpoint *endpoint = link_endpoint_of(way->outer->endpoint);
    const struct link_part *part = &endpoint->set->parts[link_inner_of(way->base.endpoint)->number];

    OFPI_CHECK(!is_active(way));
    if (way->base.state == OFP_PEER_LOST && !part->ops->peers_persist) {
        memset(way->base.private, 0, part->ops->peer_size);
        way->base.incarnation = 0;
    }
    way->base.index = way->outer->index;
    way->base.state = OFP_PEER_CONNECTING;
}

static void end(struct link_way *way)
{
    OFPI_CHECK(is_active(way));
    way->base.state = OFP_PEER_LOST;
    way->base.endpoint->ops->peer_down(&way->base);
}

void link_ways_down(struct ofp_peer *outer)
{
    const struct link_peer *peer = link_peer_of(outer);

    for (uint32_t i = 0; i < count_of(outer); i++) {
        struct link_way *way = link_way_at(outer, i);

        if (way->base.state == OFP_PEER_UP || (is_active(way) && (way == peer->trying || !peer->keeps_calls)))
            end(way);
    }
}

/* ------------------------------------------------------------------------------------------------------------ reasons */

void link_ways_forget(struct link_peer *peer)
{
    for (uint32_t i = 0; i < count_of(peer->outer); i++)
        link_way_at(peer->outer, i)->failed = false;
    peer->taken = peer->trying = NULL;
    peer->gone = peer->absent = peer->refused = peer->absent_here = false;
    peer->error = 0;
    free(peer->why);
    free(peer->remedy);
    peer->why = peer->remedy = NULL;
}

/* To a text that the peer owns; what it says already is not said again. */
static void add(char **owned, const char *between, const char *text)
{
    char whole[OFP_TEXT_MAX];

    if (*owned && strstr(*owned, text))
        return;
    snprintf(whole, sizeof(whole), "%.160s%s%.200s", *owned ? *owned : "", *owned ? between : "", text);
    free(*owned);
    *owned = strdup(whole);
}

/* Whoever asks why the peer is not reached hears of each way; behind it, once, what to do. */
static void note(struct link_peer *peer, struct link_way *way, int error, bool process_gone, const char *text)
{
    char why[OFP_TEXT_MAX];
    const char *said = text ? text : ofp_strerror(error), *remedy = strstr(said, "; ");

    way->failed = true;
    snprintf(why, sizeof(why), "%s: %.*s", link_way_name(way), remedy ? (int)(remedy - said) : 400, said);
    add(&peer->why, ", and ", why);
    if (remedy)
        add(&peer->remedy, ", or ", remedy + strlen("; "));
    /* Who knows that nobody is there tells more than who did not get there. */
    if (process_gone || !peer->gone)
        peer->error = error;
    peer->gone |= process_gone;
}

static void note_absent(struct link_peer *peer, const struct link_way *way)
{
    peer->absent = true;
    peer->absent_here |= !link_inner_of(way->base.endpoint)->is_network;
}

static void explain(const struct link_peer *peer, char text[OFP_TEXT_MAX])
{
    snprintf(text, OFP_TEXT_MAX, "%s%s%s", peer->why ? peer->why : "its address has no way that leads there from here",
             peer->remedy ? "; " : "", peer->remedy ? peer->remedy : "");
}

/* ------------------------------------------------------------------------------------------------------------ choosing */

/* Why it was not another way is said when it has cost something: the peer is there, and is reached by a slower one. */
static void tell(const struct link_peer *peer, const struct link_way *way)
{
    const struct ofp_peer *outer = peer->outer;
    char why[OFP_TEXT_MAX];

    explain(peer, why);
    if (peer->why)
        ofpi_log_write(
            OFP_LOG_WARNING, LINK_NAME,
            "endpoint %u reaches peer %u over %s, which is slower: each message costs several times as much (%s)",
            outer->endpoint->id, outer->index, link_way_name(way), why);
    else
        ofpi_log_write(OFP_LOG_INFO, LINK_NAME, "endpoint %u reaches peer %u over %s", outer->endpoint->id,
                       outer->index, link_way_name(way));
}

static void take(struct link_peer *peer, struct link_way *way)
{
    peer->taken = way;
    if (peer->trying == way)
        peer->trying = NULL;
    peer->outer->incarnation = way->base.incarnation;
    tell(peer, way);
    peer->outer->endpoint->services->peer_up(peer->outer);
}

static void give_up(struct link_peer *peer)
{
    struct ofp_peer *outer = peer->outer;
    char why[OFP_TEXT_MAX];
    int error = peer->error ? peer->error : EHOSTUNREACH;
    bool gone = peer->gone, absent = peer->absent && !peer->refused;

    /* Nobody may be there; or somebody is, and this is why they are not found. */
    if (absent && !peer->absent_here)
        add(&peer->remedy, ", or ", TO_BE_FOUND);
    explain(peer, why);
    if (absent)
        outer->endpoint->services->peer_absent(outer, why);
    else
        outer->endpoint->services->peer_lost(outer, error, gone, why);
}

/* Begin one way. False: it failed within the call, and nobody has gone on from there. */
static bool start(struct link_peer *peer, struct link_way *way)
{
    char text[OFP_TEXT_MAX] = "";
    int result;

    peer->trying = way;
    begin(way);
    result = way->base.endpoint->ops->connect(&way->base, text, sizeof(text));
    if (!result || way->base.state != OFP_PEER_CONNECTING)
        return true;
    end(way);
    if (result == -ECONNREFUSED)
        note_absent(peer, way);
    note(peer, way, -result, false, text[0] ? text : NULL);
    return false;
}

void link_ways_try(struct ofp_peer *outer)
{
    struct link_peer *peer = link_peer_of(outer);

    for (uint32_t i = 0; i < count_of(outer); i++) {
        struct link_way *way = link_way_at(outer, i);

        if (!way->reachable || way->failed)
            continue;
        /* By which it has called already. */
        if (is_active(way)) {
            peer->trying = way;
            return;
        }
        if (start(peer, way))
            return;
    }
    give_up(peer);
}

/* The way that we waited for has failed. */
static void go_on(struct link_peer *peer)
{
    bool waits = false, ours = peer->trying != NULL;

    peer->trying = NULL;
    for (uint32_t i = 0; i < count_of(peer->outer); i++) {
        struct link_way *way = link_way_at(peer->outer, i);

        if (way->base.state == OFP_PEER_UP) {
            take(peer, way);
            return;
        }
        waits |= way->base.state == OFP_PEER_CONNECTING;
    }
    if (ours)
        link_ways_try(peer->outer);
    else if (!waits)
        give_up(peer);
}

const struct link_way *link_way_to(const struct ofp_peer *outer)
{
    const struct link_peer *peer = link_peer_of(outer);

    if (peer->taken)
        return peer->taken;
    for (uint32_t i = 0; i < count_of(outer); i++)
        if (link_way_at(outer, i)->reachable && !link_way_at(outer, i)->failed)
            return link_way_at(outer, i);
    return NULL;
}

/* --------------------------------------------------------------------------------------------------------- from below */

void link_way_connecting(struct ofp_peer *inner)
{
    struct link_way *way = link_way_of(inner);
    struct ofp_peer *outer = way->outer;

    if (is_active(way))
        return;
    if (outer->state != OFP_PEER_CONNECTING && outer->state != OFP_PEER_UP) {
        link_ways_forget(link_peer_of(outer));
        outer->endpoint->services->peer_connecting(outer);
    }
    begin(way);
}

void link_way_up(struct ofp_peer *inner)
{
    struct link_way *way = link_way_of(inner);
    struct link_peer *peer = link_peer_of(way->outer);

    if (inner->state != OFP_PEER_CONNECTING) {
        ofpi_log_write(OFP_LOG_ERROR, link_way_name(way), "peer %u: it is up without having been called", inner->index);
        return;
    }
    inner->state = OFP_PEER_UP;
    if (way->outer->state == OFP_PEER_CONNECTING && (!peer->trying || peer->trying == way))
        take(peer, way);
}

void link_way_heard(struct ofp_peer *inner)
{
    struct link_way *way = link_way_of(inner);
    struct link_peer *peer = link_peer_of(way->outer);

    if (way->outer->state == OFP_PEER_CONNECTING && inner->state == OFP_PEER_UP)
        take(peer, way);
}

/* What the peer was sending by a way that our own operations do not take. */
static void lose_arrivals(const struct link_way *way, int error)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)way->outer->endpoint;

    ofpi_receive_context_peer_lost(endpoint->receive_context, (struct ofpi_peer *)way->outer,
                                   link_inner_of(way->base.endpoint)->number, error);
}

/* If the peer calls meanwhile, it begins anew. */
static void lose(struct link_peer *peer, int error, bool process_gone, const char *text)
{
    struct ofp_peer *outer = peer->outer;

    peer->keeps_calls = true;
    outer->endpoint->services->peer_lost(outer, error, process_gone, text);
    peer->keeps_calls = false;
    for (uint32_t i = 0; i < count_of(outer); i++)
        if (link_way_at(outer, i)->base.state == OFP_PEER_CONNECTING && outer->state == OFP_PEER_LOST)
            outer->endpoint->services->peer_connecting(outer);
}

/* The way has ended before the peer was up by any. */
static void failed(struct link_way *way, int error, bool process_gone, const char *text)
{
    struct link_peer *peer = link_peer_of(way->outer);

    if (way->outer->state != OFP_PEER_CONNECTING)
        return;
    note(peer, way, error, process_gone, text);
    if (!peer->trying || peer->trying == way)
        go_on(peer);
}

void link_way_absent(struct ofp_peer *inner, const char *text)
{
    struct link_way *way = link_way_of(inner);

    if (inner->state != OFP_PEER_CONNECTING)
        return;
    end(way);
    note_absent(link_peer_of(way->outer), way);
    failed(way, ECONNREFUSED, false, text);
}

void link_way_lost(struct ofp_peer *inner, int error, bool process_gone, const char *text)
{
    struct link_way *way = link_way_of(inner);
    struct ofp_peer *outer = way->outer;
    struct link_peer *peer = link_peer_of(outer);
    bool was_up;

    if (!is_active(way))
        return;
    if (way == peer->taken || (process_gone && outer->state == OFP_PEER_UP)) {
        lose(peer, error, process_gone, text);
        return;
    }
    was_up = inner->state == OFP_PEER_UP;
    end(way);
    if (was_up)
        lose_arrivals(way, error);
    peer->refused = true;
    failed(way, error, process_gone, text);
}
