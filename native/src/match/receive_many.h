/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multi-receive buffers: a posted receive with OFP_MULTI_RECV takes message after message, packed one behind the other.
 *
 * Its place among the posted receives is that of any other, so matching costs the same. What is posted is a receiver
 * whose `memory` is the room left; each message gets a receiver of its own whose `memory` was cut off the front of it.
 * All of them point to the one struct ofpi_many, which lives until it takes no more and nothing is on its way into it.
 *
 * It takes no more when less than `least` bytes are left, when the next message for it does not fit into what is left
 * (no message is split or cut because others came before it), or when its operation is ended from outside. The last
 * completion then says OFP_COMPLETED_MULTI_RECV: that of the message that finished last, or, where there is none or
 * there is an error to tell, one of its own with no other flag (fi_cq(3), FI_MULTI_RECV).
 *
 * The context owns the objects; the domain's lock is held.
 */
#ifndef OFPI_RECEIVE_MANY_H
#define OFPI_RECEIVE_MANY_H

#include "match/receive_state.h"

/* A message goes in whole, or it is the first and too long for any room: then it is cut as in any receive. */
static inline bool ofpi_many_has_space(const struct ofpi_receiver *whole, uint64_t length)
{
    return length <= whole->memory.iov_len || whole->memory.iov_base == whole->many->base;
}

/* Have the completion of one message promised, before it is cut for. False: out of memory. True for any other receive. */
bool ofpi_many_reserve_completion(struct ofpi_receive_context *context, const struct ofpi_receiver *receiver);
/* Cut the room for a message off the front of `whole`. False: that was the last one, take `whole` off the posted. */
bool ofpi_many_allocate_piece(struct ofpi_receiver *whole, uint64_t length, struct ofpi_receiver *piece);
/* Take back the cut that was made last, and the promise. */
void ofpi_many_return_piece(struct ofpi_receive_context *context, struct ofpi_receiver *whole,
                            const struct ofpi_receiver *piece);
/*
 * The message that `piece` was cut for is over. Before its completion is written: add to `result` what the completion says
 * of the buffer. After it: release the buffer if that message was the last.
 */
void ofpi_many_end_piece(const struct ofpi_receiver *piece, struct ofpi_receive_result *result);
void ofpi_many_release_piece(struct ofpi_receive_context *context, const struct ofpi_receiver *piece);
/* End an open one, which is no longer posted. `error` 0: only its room is used up. */
void ofpi_many_end(struct ofpi_receive_context *context, const struct ofpi_receiver *whole, int error);

#endif
