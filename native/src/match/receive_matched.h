/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to a receive and its message after they match. The domain's lock is held. */
#ifndef OFPI_RECEIVE_MATCHED_H
#define OFPI_RECEIVE_MATCHED_H

#include "match/receive_state.h"

/* Write the completion of an operation that matched `message`. */
void ofpi_receive_report(const struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                         uint64_t op_flags, const struct ofp_message *message, struct ofpi_receive_result result);
/* End a receiver: release its memory and write its completion. */
void ofpi_receive_end(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                      struct ofpi_receiver *receiver, const struct ofp_message *message,
                      struct ofpi_receive_result result);
/* Copy a complete message into a receiver, and end the receiver. */
void ofpi_receive_deliver(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                          struct ofpi_receiver *receiver, const struct ofp_message *message, const void *payload);
/* End a posted receive that matched no message. `error` 0: a multi-receive buffer whose space is used up. */
void ofpi_receive_fail_posted(struct ofpi_receive_context *context, struct ofpi_posted *posted, int error,
                              int provider_error);
/*
 * The receiver for one message, from the posted receive that it matched. Frees the posted receive, unless it is a
 * multi-receive buffer that stays open: that one only becomes smaller.
 */
struct ofpi_receiver ofpi_receive_pop_receiver(struct ofpi_receive_context *context, struct ofpi_posted *posted,
                                               uint64_t length);
/*
 * A posted receive with OFP_HOLD has matched an unexpected message that is neither waiting nor set aside: set the
 * message aside for the receive, and complete the receive.
 */
void ofpi_receive_set_aside(struct ofpi_receive_context *context, const struct ofp_message *message,
                            struct ofpi_unexpected *unexpected, struct ofpi_posted *posted);
/*
 * Free an unexpected message that is neither waiting nor set aside. If it borrows its memory from a claim, the claim
 * ends with ECANCELED.
 */
void ofpi_receive_free_unexpected(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected);
/*
 * Deliver an unexpected message, waiting or set aside, to a receiver, which moves into the operation. `poster`: the
 * endpoint where the receive was posted. `posted`: the posted receive that contains the receiver, which is freed, or
 * NULL. -ENOMEM: nothing has changed. May call the provider.
 */
int ofpi_receive_deliver_unexpected(struct ofpi_receive_context *context, struct ofp_endpoint *poster,
                                    struct ofpi_unexpected *unexpected, const struct ofpi_receiver *receiver,
                                    struct ofpi_posted *posted);

/*
 * The oldest posted receive that matches a message is a multi-receive buffer: end each matching buffer that has too
 * little space for the message. Returns the oldest match with enough space, or NULL.
 */
struct ofpi_posted *ofpi_receive_match_many(struct ofpi_receive_context *context, struct ofpi_posted *posted,
                                            uint32_t channel, uint64_t tag, uint32_t source, uint64_t length);

/*
 * The posted receive that matches a message and has space for it, or NULL. Inline, because every arrival calls it, and
 * a call costs more instructions than the test.
 */
static inline struct ofpi_posted *ofpi_receive_match(struct ofpi_receive_context *context, uint32_t channel,
                                                     uint64_t tag, uint32_t source, uint64_t length)
{
    struct ofpi_posted *posted = ofpi_posted_match(&context->posted, channel, tag, source);

    if (__builtin_expect(posted && posted->receiver.op_flags & OFP_MULTI_RECV, 0))
        posted = ofpi_receive_match_many(context, posted, channel, tag, source, length);
    return posted;
}

#endif
