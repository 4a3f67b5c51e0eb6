/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multi-receive buffers: a posted receive with OFP_MULTI_RECV receives many messages, one behind the other.
 *
 * The buffer is posted like any other receive, so matching costs the same. The posted receiver is called `whole`: its
 * `memory` is the space that is left. Each message gets a receiver of its own, a piece: its `memory` is cut off the
 * front of `whole`. `whole` and all pieces point to one struct ofpi_many, which is freed when the buffer is not open
 * and no message into it is in flight.
 *
 * The buffer is open until less than `least` bytes are left, or the next message does not fit into the space that is
 * left (no message is truncated because others arrived before it), or its operation is cancelled or failed. The
 * buffer's last completion has OFP_COMPLETED_MULTI_RECV: the completion of the message that completes last, or, if
 * there is none or the operation failed, a separate completion with no other flag (fi_cq(3), FI_MULTI_RECV).
 *
 * The context owns the objects. The domain's lock is held.
 */
#ifndef OFPI_RECEIVE_MANY_H
#define OFPI_RECEIVE_MANY_H

#include "match/receive_state.h"

/* The message fits, or it is the first one: a first message that is too long is truncated as in any receive. */
static inline bool ofpi_many_has_space(const struct ofpi_receiver *whole, uint64_t length)
{
    return length <= whole->memory.iov_len || whole->memory.iov_base == whole->many->base;
}

/*
 * Reserve the completion of one message, before ofpi_many_allocate_piece. False: out of memory. Always true for a
 * receive that is no multi-receive buffer.
 */
bool ofpi_many_reserve_completion(struct ofpi_receive_context *context, const struct ofpi_receiver *receiver);
/*
 * Cut the piece for a message off the front of `whole`. False: the buffer is used up, remove it from the posted ones.
 */
bool ofpi_many_allocate_piece(struct ofpi_receiver *whole, uint64_t length, struct ofpi_receiver *piece);
/* Return the piece that was cut last, and its reservation. */
void ofpi_many_return_piece(struct ofpi_receive_context *context, struct ofpi_receiver *whole,
                            const struct ofpi_receiver *piece);
/*
 * The message that `piece` was cut for has ended. Call the first function before its completion is written: it adds the
 * buffer's flag and offset to `result`. Call the second one afterwards: it releases the buffer after the last message.
 */
void ofpi_many_end_piece(const struct ofpi_receiver *piece, struct ofpi_receive_result *result);
void ofpi_many_release_piece(struct ofpi_receive_context *context, const struct ofpi_receiver *piece);
/* End an open buffer that is no longer posted. `error` 0: its space is used up. */
void ofpi_many_end(struct ofpi_receive_context *context, const struct ofpi_receiver *whole, int error);

#endif
