/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA and atomics. The initiator executes an operation at once where the peer's region table lists the memory and the
 * initiator can access it (direct.c). All other operations are requested of the peer through its ring (request.c), and
 * the peer's core decides (serve.c). At most one operation to a peer has started and not left completely:
 * link->remote_operation. Until then no later operation leaves, so the operations of one peer keep the order of their
 * posts. For the same reason none is executed directly while the peer has to answer a request.
 */
#ifndef SHM_REMOTE_H
#define SHM_REMOTE_H

#include "base/core.h"

/* The event that the target reports. */
static inline uint64_t shm_event_of(uint32_t operation_code, bool has_data)
{
    return ofp_operation_row(operation_code)->event | (has_data ? OFP_COMPLETED_REMOTE_CQ_DATA : 0);
}

#endif
