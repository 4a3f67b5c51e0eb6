/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA and atomics. An operation is carried out by us, at once, where the peer's table shows its memory and we can reach it
 * (direct.c); all else goes to the peer through its ring (request.c), whose core decides (serve.c).
 *
 * At most one operation towards a peer has begun and not left whole: link->reach. Until it has, nothing that was posted
 * later leaves, so the order of one peer's operations is that of their posts. For the same reason nothing is carried out
 * by us as long as the peer owes an answer.
 */
#ifndef SHM_REMOTE_H
#define SHM_REMOTE_H

#include "base/core.h"

/* What the target is told. */
static inline uint64_t shm_event_of(uint32_t operation_code, bool has_data)
{
    return ofp_operation_row(operation_code)->event | (has_data ? OFP_COMPLETED_REMOTE_CQ_DATA : 0);
}

#endif
