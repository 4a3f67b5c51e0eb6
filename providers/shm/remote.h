/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA and atomics. An operation is carried out by us, at once, where the peer's table shows its memory and we can reach it
 * (direct.c); all else, atomics always, goes to the peer through its ring (request.c), whose core decides (serve.c).
 *
 * At most one operation towards a peer has begun and not left whole: link->reach. Until it has, nothing that was posted
 * later leaves, so the order of one peer's operations is that of their posts. For the same reason nothing is carried out
 * by us as long as the peer owes an answer.
 */
#ifndef SHM_REMOTE_H
#define SHM_REMOTE_H

#include "pending.h"
#include "shm.h"

/* direct.c */
int shm_post_remote(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer);
/* One step of every operation that has not left whole. Returns events handled. */
int shm_reaching_work(struct shm_endpoint *endpoint);
/* Whether one of them could go on now. */
bool shm_reaching_can_move(struct shm_endpoint *endpoint);
/* The operation has begun and is not through; it has left whole. */
void shm_reach_begin(struct shm_link *link, struct ofp_pending *pending);
void shm_reach_end(struct shm_link *link);
bool shm_notice_arrived(struct shm_link *link, const struct shm_content *content);

/* request.c */
int shm_request_post(struct ofp_endpoint *base, struct shm_link *link, const struct ofp_transfer *transfer);
/* Ask for what is left of an operation that was begun otherwise. */
void shm_request_rest(struct shm_link *link, struct ofp_pending *pending);
int shm_request_work(struct shm_link *link, struct ofp_pending *pending);
bool shm_answer_arrived(struct shm_link *link, const struct shm_content *content);

/* serve.c; false: the peer broke the protocol. */
bool shm_request_arrived(struct shm_link *link, const struct shm_content *content);

/* stream.c: copy to memory that this core does not read next. */
void shm_stream(void *to, const void *from, uint64_t length);

/* What the target is told. */
static inline uint64_t shm_event_of(uint32_t operation_code, bool has_data)
{
    return ofp_operation_row(operation_code)->event | (has_data ? OFP_COMPLETED_REMOTE_CQ_DATA : 0);
}

#endif
