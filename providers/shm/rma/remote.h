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

#include "base/core.h"

/* What a region must grant. A value that comes back is a read. */
static inline uint32_t shm_rights_of(uint32_t operation_code, uint32_t atomic_op)
{
    switch (operation_code) {
    case OFP_READ:
        return OFP_ACCESS_REMOTE_READ;
    case OFP_WRITE:
    case OFP_ATOMIC:
        return OFP_ACCESS_REMOTE_WRITE;
    default:
        return OFP_ACCESS_REMOTE_READ | (atomic_op == OFP_ATOMIC_READ ? 0 : OFP_ACCESS_REMOTE_WRITE);
    }
}

/* What the target is told. */
static inline uint64_t shm_event_of(uint32_t operation_code, bool has_data)
{
    bool writes = operation_code == OFP_WRITE || operation_code == OFP_ATOMIC;

    return (writes ? OFP_COMPLETED_REMOTE_WRITE : OFP_COMPLETED_REMOTE_READ) |
           (operation_code >= OFP_ATOMIC ? OFP_COMPLETED_ATOMIC : 0) | (has_data ? OFP_COMPLETED_REMOTE_CQ_DATA : 0);
}

#endif
