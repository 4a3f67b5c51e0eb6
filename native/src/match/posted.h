/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posted receives, in the order of posting, with an index for each class (selector.h): an arrived message finds its
 * receive without a search. The receive context owns the objects. The domain's lock is held.
 */
#ifndef OFPI_POSTED_H
#define OFPI_POSTED_H

#include "match/receiver.h"
#include "match/selector.h"

/* Two cache lines. A lookup touches only the first. */
struct ofpi_posted {
    struct ofpi_match_node node;
    struct ofp_endpoint *endpoint;
    struct ofp_list order; /* in ofpi_posted_receives.order */
    struct ofpi_receiver receiver;
    uint64_t class; /* index into ofpi_posted_receives.classes */
};
_Static_assert(sizeof(struct ofpi_posted) == 128, "a posted receive is two cache lines");

struct ofpi_posted_class {
    uint64_t ignore;
    bool named;
    struct ofpi_match_index index; /* while it is empty, the class may be reused for another mask */
};

/* The two classes without a mask have fixed indexes; classes with a mask follow. */
enum { OFPI_CLASS_NAMED, OFPI_CLASS_ANY, OFPI_CLASS_MASKED };

struct ofpi_posted_receives {
    struct ofpi_posted_class *classes;
    uint32_t class_count, class_capacity;
    uint64_t count;
    uint64_t masked; /* how many of `count` are in a class with a mask */
    uint64_t next_sequence;
    struct ofp_list order; /* oldest first */
    struct ofpi_slab slab;
    uint64_t seed[2];
};

int ofpi_posted_open(struct ofpi_posted_receives *posted, const uint64_t seed[2]);
void ofpi_posted_close(struct ofpi_posted_receives *posted);
/* The receiver is copied; its memory belongs to the posted receive from now on. -ENOMEM. */
int ofpi_posted_add(struct ofpi_posted_receives *posted, struct ofp_endpoint *endpoint,
                    const struct ofpi_selector *selector, const struct ofpi_receiver *receiver);
/* The receive posted first among those that match, or NULL. It stays posted. */
struct ofpi_posted *ofpi_posted_match(const struct ofpi_posted_receives *posted, uint32_t channel, uint64_t tag,
                                      uint32_t source);
/* The same among those that are not bound to an incarnation; searches in the order of posting. */
struct ofpi_posted *ofpi_posted_match_unbound(struct ofpi_posted_receives *posted, uint32_t channel, uint64_t tag,
                                              uint32_t source);
/* Remove from the order and the index. The object stays valid until the caller calls ofpi_posted_free. */
void ofpi_posted_remove(struct ofpi_posted_receives *posted, struct ofpi_posted *receive);
static inline void ofpi_posted_free(struct ofpi_posted_receives *posted, struct ofpi_posted *receive)
{
    ofpi_slab_free(&posted->slab, receive);
}

static inline uint8_t ofpi_channel_of_posted(const struct ofpi_posted *receive)
{
    return (uint8_t)(receive->node.key.origin >> 32);
}
/* The source that the receive names, or OFP_PEER_ANY. */
static inline uint32_t ofpi_source_of_posted(const struct ofpi_posted *receive)
{
    return (uint32_t)receive->node.key.origin;
}

#endif
