/* SPDX-License-Identifier: BSD-3-Clause */
/* From a match to its end: what becomes of a receive and its message. The domain's lock is held. */
#ifndef OFPI_RECEIVE_MATCHED_H
#define OFPI_RECEIVE_MATCHED_H

#include "match/receive_state.h"

/* Write the completion of an operation that found `message`. */
void ofpi_receive_report(const struct ofpi_receive_context *context, struct ofp_endpoint *endpoint, uint64_t op_context,
                         uint64_t op_flags, const struct ofp_message *message, struct ofpi_receive_result result);
/* End a receiver: release its memory and write its completion. */
void ofpi_receive_end(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                      struct ofpi_receiver *receiver, const struct ofp_message *message,
                      struct ofpi_receive_result result);
/* Copy a whole message into a receiver, and end it. */
void ofpi_receive_deliver(struct ofpi_receive_context *context, struct ofp_endpoint *endpoint,
                          struct ofpi_receiver *receiver, const struct ofp_message *message, const void *payload);
/* End a posted receive that met no message; 0: a multi-receive buffer whose room is used up. */
void ofpi_receive_fail_posted(struct ofpi_receive_context *context, struct ofpi_posted *posted, int error,
                              int provider_error);
/* The receiver for one message, out of a posted receive that was matched and is used up, or has become smaller. */
struct ofpi_receiver ofpi_receive_pop_receiver(struct ofpi_receive_context *context, struct ofpi_posted *posted,
                                               uint64_t length);
/*
 * A posted receive with OFP_HOLD has met `kept`, which is neither waiting nor set aside: it is set aside for it, and the
 * receive completes.
 */
void ofpi_receive_set_aside(struct ofpi_receive_context *context, const struct ofp_message *message,
                            struct ofpi_unexpected *unexpected, struct ofpi_posted *posted);
/* Free a kept message that is neither waiting nor set aside; whoever lent its memory is told that it is free. */
void ofpi_receive_free_unexpected(struct ofpi_receive_context *context, struct ofpi_unexpected *unexpected);
/*
 * Give a kept message, waiting or set aside, to a receiver, which is used up; `poster`: the endpoint whose receiver it is;
 * `posted`: the posted receive whose it is, or NULL. -ENOMEM: nothing has changed. The provider may be called.
 */
int ofpi_receive_deliver_unexpected(struct ofpi_receive_context *context, struct ofp_endpoint *poster,
                                    struct ofpi_unexpected *unexpected, const struct ofpi_receiver *receiver,
                                    struct ofpi_posted *posted);

/*
 * A multi-receive buffer among the posted receives is the first that matches a message: end the buffers whose space is too
 * small for it. Returns the first match with enough space, or NULL.
 */
struct ofpi_posted *ofpi_receive_match_many(struct ofpi_receive_context *context, struct ofpi_posted *posted,
                                            uint32_t channel, uint64_t tag, uint32_t source, uint64_t length);

/*
 * The posted receive that a message belongs to, with space for it; or NULL. Inline: every arrival calls it, and a call in
 * between costs more instructions than the test does.
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
