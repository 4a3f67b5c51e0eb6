/* SPDX-License-Identifier: BSD-3-Clause */
/* What a provider tells of the identities of endpoints, heard as an endpoint that is made of several would hear it. */
#ifndef IDENTITY_EAR_H
#define IDENTITY_EAR_H

#include <stdio.h>

#include "core_fixture.h"
#include "provider/services.h"

struct ear {
    struct ofp_services services;
    uint8_t called_by[OFP_IDENTITY_SIZE], answered_by[OFP_IDENTITY_SIZE];
    int calls, answers, verdict;
    bool connects_only;
};
static struct ear ears[2];

static inline struct ear *ear_of(const struct ofp_endpoint *endpoint)
{
    return OFP_CONTAINER_OF(endpoint->services, struct ear, services);
}

static inline struct ofp_peer *peer_by_identity(struct ofp_endpoint *endpoint, const uint8_t *identity,
                                                bool connects_only, const void *address, size_t length)
{
    struct ear *ear = ear_of(endpoint);

    memcpy(ear->called_by, identity, OFP_IDENTITY_SIZE);
    ear->connects_only = connects_only;
    ear->calls++;
    return ofpi_services.peer_by_identity(endpoint, identity, connects_only, address, length);
}

static inline int peer_identified(struct ofp_peer *peer, const uint8_t *identity, char *text, size_t text_size)
{
    struct ear *ear = ear_of(peer->endpoint);

    assert_int_equal(peer->state, OFP_PEER_CONNECTING);
    memcpy(ear->answered_by, identity, OFP_IDENTITY_SIZE);
    ear->answers++;
    snprintf(text, text_size, "somebody else has its address");
    return ear->verdict;
}

static inline void listen_to(struct side *side, struct ear *ear)
{
    *ear = (struct ear){.services = ofpi_services};
    ear->services.peer_by_identity = peer_by_identity;
    ear->services.peer_identified = peer_identified;
    side->endpoint->services = &ear->services;
}

/* A message from one to the other; how it ended, and why. */
static inline int talk(struct side *from, struct side *to, char reason[OFP_TEXT_MAX])
{
    /* What did not arrive leaves its receive posted. */
    static uint8_t out = 1, in;
    struct ofp_completion row;
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, &in, 1, 2);
    struct ofp_operation send = tagged(OFP_TSEND, from->peer, 1, &out, 1, 1);

    assert_int_equal(ofp_post(to->endpoint, &receive, 1), 1);
    assert_int_equal(ofp_post(from->endpoint, &send, 1), 1);
    row = next_completion(from, to);
    ofp_reason(row.provider_error, reason, OFP_TEXT_MAX);
    if (!row.error)
        assert_int_equal(next_completion(to, from).error, 0);
    return row.error;
}

/* Sides that have met in their vectors. */
static inline void each_hears_who_the_other_is(struct side *a, struct side *b)
{
    char reason[OFP_TEXT_MAX];

    assert_int_equal(talk(a, b, reason), 0);
    assert_int_equal(talk(b, a, reason), 0);
    assert_int_equal(ears[0].answers, 1);
    assert_int_equal(ears[0].calls, 0);
    assert_memory_equal(ears[0].answered_by, b->endpoint->identity, OFP_IDENTITY_SIZE);
    assert_int_equal(ears[1].answers, 0);
    assert_int_equal(ears[1].calls, 1);
    assert_memory_equal(ears[1].called_by, a->endpoint->identity, OFP_IDENTITY_SIZE);
    assert_false(ears[1].connects_only);
}

static inline void another_than_is_meant(struct side *a, struct side *b)
{
    char reason[OFP_TEXT_MAX];

    ears[0].verdict = -ECONNREFUSED;
    assert_int_equal(talk(a, b, reason), ECONNREFUSED);
    assert_non_null(strstr(reason, "somebody else has its address"));
    ears[0].verdict = 0;
    assert_int_equal(talk(a, b, reason), 0);
}

#endif
