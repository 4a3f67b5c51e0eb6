/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits limit how many packets each side may send. One credit is one posted receive buffer of the peer, so every
 * packet finds a buffer. A sender charges a credit for each packet; the receiver grants it again with a later packet,
 * when the buffer is posted again. This file computes with numbers only. docs/explanation/rdm.md explains the two
 * classes.
 */
#ifndef OFPI_RDM_CREDIT_H
#define OFPI_RDM_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "ofipy/check.h"

/* Class of a packet. An answer is handled when it arrives; a request may have to wait. */
enum ofpi_credit_class { OFPI_CREDIT_REQUEST, OFPI_CREDIT_ANSWER, OFPI_CREDIT_CLASSES };

#define OFPI_CREDIT_FIRST 4   /* of each class: initial window, as long as half of the pool remains free */
#define OFPI_CREDIT_LEAST 1   /* of each class: initial window otherwise, and the minimum */
#define OFPI_CREDIT_MOST 1024 /* of each class: the largest window */
#define OFPI_CREDIT_SPARE 4   /* buffers of a path for packets that only grant credits */
#define OFPI_CREDIT_PATH_LEAST (OFPI_CREDIT_CLASSES * OFPI_CREDIT_LEAST + OFPI_CREDIT_SPARE)
#define OFPI_CREDIT_POOL_LEAST (2 * OFPI_CREDIT_PATH_LEAST) /* a path to the own endpoint has two ends here */

/* The receive buffers of an endpoint. granted <= posted: every granted credit has a buffer. */
struct ofpi_credit_pool {
    uint32_t posted, granted;
};

struct ofpi_credits {
    uint16_t left[OFPI_CREDIT_CLASSES]; /* packets that this side may send */
    /* Of the peer. window = out + owed + requests that wait here, so out + owed <= window. */
    uint16_t window[OFPI_CREDIT_CLASSES]; /* reserved from our pool */
    uint16_t out[OFPI_CREDIT_CLASSES];    /* credits that the peer has, or that are in flight to it */
    uint16_t owed[OFPI_CREDIT_CLASSES];   /* credits of handled packets, to be granted with the next packet */
};

/* Reserve the initial windows. False: the pool has no buffers for another path. */
bool ofpi_credit_open(struct ofpi_credits *credits, struct ofpi_credit_pool *pool);
void ofpi_credit_close(struct ofpi_credits *credits, struct ofpi_credit_pool *pool);

static inline bool ofpi_credit_is_left(const struct ofpi_credits *credits, enum ofpi_credit_class which)
{
    return credits->left[which] > 0;
}
static inline void ofpi_credit_charge(struct ofpi_credits *credits, enum ofpi_credit_class which)
{
    OFP_CHECK(credits->left[which] > 0);
    credits->left[which]--;
}

/* Add the credits that the peer granted. False: there are more than possible. */
bool ofpi_credit_receive(struct ofpi_credits *credits, const uint16_t granted[OFPI_CREDIT_CLASSES]);

/* Account for an arrived packet. False: the peer had no credit for it. */
bool ofpi_credit_accept_packet(struct ofpi_credits *credits, enum ofpi_credit_class which);
/* The packet was handled and its buffer posted again. */
static inline void ofpi_credit_mark_owed(struct ofpi_credits *credits, enum ofpi_credit_class which)
{
    OFP_CHECK(credits->out[which] + credits->owed[which] < credits->window[which]);
    credits->owed[which]++;
}
/* Whether so many credits are owed that a packet must grant them, if no other packet leaves. */
bool ofpi_credit_is_due(const struct ofpi_credits *credits);
/* Grant all owed credits with the packet that leaves now, and adapt the windows. */
void ofpi_credit_grant(struct ofpi_credits *credits, struct ofpi_credit_pool *pool,
                       uint16_t granted[OFPI_CREDIT_CLASSES]);

#endif
