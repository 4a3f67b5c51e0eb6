/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive context's inside, and what its files share: what becomes of a receive and a message once they met. */
#ifndef OFPI_RECEIVE_MATCHED_H
#define OFPI_RECEIVE_MATCHED_H

#include "match/lent.h"
#include "match/posted.h"
#include "match/unexpected.h"

struct ofpi_receive_context {
    struct ofpi_posted_receives posted;
    struct ofpi_unexpected_messages unexpected;
    struct ofpi_lent_receives lent;
    struct ofpi_slab segments; /* struct ofpi_segments of all receivers */
    struct ofpi_slab many;     /* struct ofpi_many */
    uint64_t min_multi_recv;   /* bytes, of buffers posted from now on */
    struct ofpi_reserve *entries;
    struct ofpi_domain *domain;
    struct ofp_timer fetch; /* runs while a request holds an announced message; receive_fetch.c */
    int (*start_timer)(struct ofpi_domain *domain, struct ofp_timer *timer);
    void (*complete)(struct ofp_endpoint *endpoint, uint64_t op_flags, struct ofp_completion *completion);
};

/* How an operation ended; all zero: well. */
struct ofpi_receive_result {
    uint64_t flags; /* OFP_COMPLETED_CLAIM, OFP_COMPLETED_MULTI_RECV */
    uint64_t buffer_offset;
    int error; /* positive */
    int provider_error;
};

/* Write the completion of an operation that found `message`. */
void ofpi_receive_report(const struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                         uint64_t op_flags, const struct ofp_message *message, struct ofpi_receive_result result);
/* End a receiver: release its memory and write its completion. */
void ofpi_receive_finish(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                         struct ofpi_receiver *receiver, const struct ofp_message *message,
                         struct ofpi_receive_result result);
/* Copy a whole message into a receiver, and end it. */
void ofpi_receive_deliver(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                          struct ofpi_receiver *receiver, const struct ofp_message *message, const void *payload);
/* End a posted receive that met no message; 0: a multi-receive buffer whose room is used up. */
void ofpi_receive_fail(struct ofpi_receive_context *context, struct ofpi_posted *posted, int error, int provider_error);
/* The receiver for one message, out of a posted receive that was matched and is used up, or has become smaller. */
struct ofpi_receiver ofpi_receive_use(struct ofpi_receive_context *context, struct ofpi_posted *posted,
                                      uint64_t length);
/*
 * A posted receive with OFP_HOLD has met `kept`, which is neither waiting nor set aside: it is set aside for it, and the
 * receive completes.
 */
void ofpi_receive_hold(struct ofpi_receive_context *context, const struct ofp_message *message,
                       struct ofpi_unexpected *kept, struct ofpi_posted *posted);
/* Whether a stream still fills a kept message; who takes one off the lists hands it to its `filling`. */
static inline bool ofpi_unexpected_is_filling(const struct ofpi_unexpected *kept)
{
    return !kept->announced && kept->filling;
}
/* The payload of a kept message, which has its memory, follows: `lent` moves it there. */
void ofpi_receive_fill(struct ofpi_lent *lent, struct ofpi_unexpected *kept, struct ofp_endpoint *endpoint,
                       const struct ofp_message *message);
/* Free a kept message that is neither waiting nor set aside; whoever lent its memory is told that it is free. */
void ofpi_receive_free(struct ofpi_receive_context *context, struct ofpi_unexpected *kept);
/*
 * Give a kept message, waiting or set aside, to a receiver, which is used up; `poster`: the endpoint whose receiver it is;
 * `posted`: the posted receive whose it is, or NULL. -ENOMEM: nothing has changed. The provider may be called.
 */
int ofpi_receive_take_kept(struct ofpi_receive_context *context, struct ofp_endpoint *poster,
                           struct ofpi_unexpected *kept, const struct ofpi_receiver *receiver,
                           struct ofpi_posted *posted);

#endif
