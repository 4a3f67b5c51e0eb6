/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits: who may send how many packets. One credit is one posted receive buffer of the peer's, so nobody is ever
 * sent a packet for which there is none. Pure: numbers only. Why there are two classes: docs/explanation/rdm.md
 */
#ifndef OFPI_RDM_CREDIT_H
#define OFPI_RDM_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

/* As in the packet's header. An answer is always taken at once; a request may have to wait where it arrived. */
enum ofpi_credit_class { OFPI_CREDIT_REQUEST, OFPI_CREDIT_ANSWER, OFPI_CREDIT_CLASSES };

#define OFPI_CREDIT_FIRST 4   /* of each class: with what a path begins, as long as that leaves half of the pool free */
#define OFPI_CREDIT_LEAST 1   /* of each class: with what it begins else, and what it keeps */
#define OFPI_CREDIT_MOST 1024 /* of each class */
#define OFPI_CREDIT_SPARE 4   /* buffers that a path has for packets which only give credits back */
#define OFPI_CREDIT_PATH_LEAST (OFPI_CREDIT_CLASSES * OFPI_CREDIT_LEAST + OFPI_CREDIT_SPARE)
#define OFPI_CREDIT_POOL_LEAST (2 * OFPI_CREDIT_PATH_LEAST) /* a path to oneself has two ends here */

/* The buffers of an endpoint, and how many of them are promised. */
struct ofpi_credit_pool {
    uint32_t posted, granted;
};

struct ofpi_credits {
    uint16_t left[OFPI_CREDIT_CLASSES]; /* packets that we may send */
    /* Theirs: window = out + owed + those that wait where they arrived. */
    uint16_t window[OFPI_CREDIT_CLASSES]; /* granted from our pool */
    uint16_t out[OFPI_CREDIT_CLASSES];    /* that they have, or are on their way to them */
    uint16_t owed[OFPI_CREDIT_CLASSES];   /* of packets that are done with */
};

/* False: the pool cannot back another path. The windows are what its first packets may use. */
bool ofpi_credit_open(struct ofpi_credits *credits, struct ofpi_credit_pool *pool);
void ofpi_credit_close(struct ofpi_credits *credits, struct ofpi_credit_pool *pool);

static inline bool ofpi_credit_is_left(const struct ofpi_credits *credits, enum ofpi_credit_class which)
{
    return credits->left[which] > 0;
}
static inline void ofpi_credit_charge(struct ofpi_credits *credits, enum ofpi_credit_class which)
{
    credits->left[which]--;
}

/* The peer gave some back, or its first. False: more than there can be. */
bool ofpi_credit_receive(struct ofpi_credits *credits, const uint16_t granted[OFPI_CREDIT_CLASSES]);

/* A packet of theirs has come. False: they were not granted it. */
bool ofpi_credit_accept_packet(struct ofpi_credits *credits, enum ofpi_credit_class which);
/* It is done with, and its buffer posted again. */
static inline void ofpi_credit_mark_owed(struct ofpi_credits *credits, enum ofpi_credit_class which)
{
    credits->owed[which]++;
}
/* So much is owed that a packet has to say so, if nothing else leaves. */
bool ofpi_credit_is_due(const struct ofpi_credits *credits);
/* What the packet that now leaves gives back. */
void ofpi_credit_grant(struct ofpi_credits *credits, struct ofpi_credit_pool *pool,
                       uint16_t granted[OFPI_CREDIT_CLASSES]);

#endif
